// One payer who wants one thing: takes a quote, signs once, sends, sends the same again, leaves, comes back. It signs
// nothing anew: what becomes of this one payment is what the run is about.
import { request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { parseSignature, type Hex } from 'viem';
import type { Semaphore } from '../../../src/gateway/rails/semaphore.ts';
import { createPayer, type Payer } from '../../support/chain/payer.ts';
import type { Conclusion, Journal } from './journal.ts';
import type { PaymentPlan } from './plan.ts';
import { fund, USDC, type Door, type World } from './world.ts';

export type Client = {
  readonly plan: PaymentPlan;
  readonly nonce: Hex;
  readonly payer: string;
  /** Every answer that it ever had said that nothing was taken. */
  nothingTaken: boolean;
  /** It was told that nothing was taken, by every request it ever sent, and asks no more. */
  gaveUp: boolean;
  /** It has what it wanted, or an answer that says that nothing more will come. */
  done: boolean;
  askedAgain: boolean;
};

/** Answers that end it: the payment is no good, or was used up. */
const FINAL_REASONS =
  /^(payment_refused|settlement_refused|quote_mismatch|quote_already_used|payment_already_used|already_paid)/;
/** Answers that promise that nothing was taken and nothing will be. */
const NOTHING_TAKEN = /^(facilitator_unavailable|ledger_unavailable|payment_refused|settlement_refused)/;
const PAUSE_MS = 150;
/** Between copies of one that goes on. */
const GAP_MS = 8;
/** It comes back when it was told to, but not so late that a run takes minutes. */
const LONGEST_PAUSE_MS = 10_000;
/** Longer than a lease and all time-outs of one request together. */
const PATIENCE_MS = 20_000;
/** One that goes on asks elsewhere while it waits for an answer for longer than a lease. */
const OVERTAKES_MS = 11_500;
/** Of a quote: another one is asked then. */
const QUOTE_MS = 2_000;
/** Below what an authorization needs to be served before it is settled. */
const SHORT_SECONDS = 25n;

type Accepted = { readonly amount: string; readonly payTo: string; readonly maxTimeoutSeconds: number };

export async function runClient(world: World, journal: Journal, plan: PaymentPlan): Promise<Client> {
  const key = generatePrivateKey();
  const payer = await createPayer(undefined, 0n, key);
  if (plan.kind !== 'poor') await fund(world.chain, payer.address);
  const client: Client = {
    plan,
    nonce: generatePrivateKey(),
    payer: payer.address,
    nothingTaken: true,
    gaveUp: false,
    done: false,
    askedAgain: false,
  };
  const accepted = await quote(world, plan);
  const credential = await sign(plan, payer, accepted, client.nonce);
  let sent = 0;
  const ask = async (copies: number): Promise<void> => {
    const ends = await Promise.all(
      Array.from({ length: copies }, async (_, copy) => {
        if (plan.goesOn) await setTimeout(copy * GAP_MS);
        return send(world.door(), journal, plan, credential, plan.leaves[sent++]);
      }),
    );
    judge(client, ends);
  };
  const isOver = (): boolean => client.gaveUp || (client.done && !plan.goesOn);
  const asked: Promise<void>[] = [];
  let isOvertaken = false;
  for (let attempt = 0; attempt < plan.copies.length && !isOver(); attempt++) {
    const asking = ask(plan.copies[attempt] ?? 1);
    asked.push(asking);
    const late = plan.goesOn ? [setTimeout(OVERTAKES_MS, true, { ref: false })] : [];
    isOvertaken ||= (await Promise.race([asking, ...late])) === true;
    if (plan.kind === 'cancelled' && attempt === 0) await cancel(world, key, client.nonce);
    await setTimeout(PAUSE_MS);
  }
  await Promise.all(asked);
  // What the one that was overtaken did when it went on must not show.
  if (isOvertaken) await ask(1);
  client.gaveUp = plan.givesUp && client.nothingTaken;
  waiting.set(client, credential);
  return client;
}

const waiting = new WeakMap<Client, string>();

/** Asks until it has what it paid for, or a final answer, or `stop`. All is well by now. `turns`: for one request each. */
export async function insist(
  world: World,
  journal: Journal,
  client: Client,
  turns: Semaphore,
  stop: AbortSignal,
): Promise<void> {
  const credential = waiting.get(client) ?? '';
  const ask = async (): Promise<Conclusion> => {
    const release = await turns.wait();
    return send(world.door(), journal, client.plan, credential, undefined).finally(() => release?.());
  };
  while (!client.done && !client.gaveUp && !stop.aborted) {
    const end = await ask();
    judge(client, [end]);
    const told = end.kind === 'told' ? end.retryAfterMs : 0;
    const pauseMs = Math.min(Math.max(PAUSE_MS, told), LONGEST_PAUSE_MS);
    if (!client.done) await setTimeout(pauseMs, undefined, { signal: stop }).catch(() => undefined);
  }
  if (!client.done || client.askedAgain || !client.plan.asksAgain) return;
  client.askedAgain = true;
  await ask();
}

function judge(client: Client, ends: readonly Conclusion[]): void {
  const code = (end: Conclusion): string => (end.kind === 'told' ? end.code : '');
  // What was not charged is no end for one that goes on: a later copy may be.
  const { goesOn, givesUp } = client.plan;
  if (ends.some((end) => end.kind === 'served' && end.status < 500 && (end.charged || !goesOn))) client.done = true;
  if (ends.every((end) => FINAL_REASONS.test(code(end)))) client.done = true;
  client.nothingTaken &&= ends.every((end) => NOTHING_TAKEN.test(code(end)));
  if (!goesOn) client.gaveUp ||= givesUp && client.nothingTaken;
}

async function quote(world: World, { n, method }: PaymentPlan): Promise<Accepted> {
  for (;;) {
    const signal = AbortSignal.timeout(QUOTE_MS);
    const response = await fetch(`${world.door().url}/paid/${n}?of=${n}`, { method, signal }).catch(() => undefined);
    await response?.arrayBuffer().catch(() => undefined);
    const header = response?.headers.get('payment-required');
    if (header !== undefined && header !== null) {
      const { accepts } = JSON.parse(Buffer.from(header, 'base64').toString()) as { accepts: [Accepted] };
      return accepts[0];
    }
    await setTimeout(PAUSE_MS);
  }
}

async function sign(plan: PaymentPlan, payer: Payer, accepted: Accepted, nonce: Hex): Promise<string> {
  const now = BigInt(Math.floor(Date.now() / 1000));
  const seconds = plan.kind === 'short' ? SHORT_SECONDS : BigInt(accepted.maxTimeoutSeconds);
  const wanted = { to: accepted.payTo, value: BigInt(accepted.amount), asset: USDC, nonce, validBefore: now + seconds };
  const payload = await payer.authorize(wanted);
  const { signature } = payload;
  const last = signature.at(-4) === '0' ? '1' : '0';
  const shown =
    plan.kind === 'forged'
      ? { ...payload, signature: `${signature.slice(0, -4)}${last}${signature.slice(-3)}` }
      : payload;
  const content =
    plan.version === 2
      ? { x402Version: 2, accepted, payload: shown }
      : { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: shown };
  return Buffer.from(JSON.stringify(content)).toString('base64');
}

async function cancel(world: World, key: Hex, nonce: Hex): Promise<void> {
  const account = privateKeyToAccount(key);
  const signature = await account.signTypedData({
    domain: { name: 'USDC', version: '2', chainId: 84_532, verifyingContract: USDC },
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: account.address, nonce },
  });
  const { r, s, v } = parseSignature(signature);
  // It may have been used meanwhile: then there is nothing to cancel.
  await world.chain.write('cancelAuthorization', [account.address, nonce, Number(v), r, s]).catch(() => undefined);
}

/** One request, on a connection of its own. */
function send(
  { who, url }: Door,
  journal: Journal,
  plan: PaymentPlan,
  credential: string,
  leavesAfterMs: number | undefined,
): Promise<Conclusion> {
  const from = performance.now();
  let headAt: number | undefined;
  return new Promise((resolve) => {
    const headers = { [plan.version === 2 ? 'payment-signature' : 'x-payment']: credential };
    const body = plan.method === 'POST' ? 'x'.repeat(3000) : undefined;
    const { n, method } = plan;
    const outgoing = request(`${url}/paid/${n}?of=${n}`, { method, headers, agent: false });
    let over = false;
    const end = (conclusion: Conclusion): void => {
      if (over) return;
      over = true;
      clearTimeout(patience);
      journal.requests.push({ n, who, from, headAt, to: performance.now(), end: conclusion });
      outgoing.destroy();
      resolve(conclusion);
    };
    const patience = globalThis.setTimeout(() => end({ kind: 'left' }), leavesAfterMs ?? PATIENCE_MS);
    outgoing.on('error', () => end({ kind: 'broken' }));
    outgoing.on('close', () => end({ kind: 'broken' }));
    outgoing.on('response', (response) => {
      const status = response.statusCode ?? 0;
      headAt = performance.now();
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', () => end({ kind: 'cut', status }));
      response.on('aborted', () => end({ kind: 'cut', status }));
      response.on('end', () => end(readAnswer(status, response.headers, Buffer.concat(parts).toString())));
    });
    // In two packets, as larger bodies come.
    if (body !== undefined) outgoing.write(body.slice(0, 1448));
    setImmediate(() => outgoing.end(body?.slice(1448)));
  });
}

/** What an answer that came whole says. */
export function readAnswer(status: number, headers: NodeJS.Dict<string | string[]>, body: string): Conclusion {
  const run = headers['x-run'];
  if (run !== undefined) {
    const receipt = headers['payment-response'] ?? headers['x-payment-response'];
    return { kind: 'served', status, charged: receipt !== undefined, run: Number(run) };
  }
  const reason = String(headers['tollgate-reason'] ?? '');
  const retryAfterMs = 1000 * Number(headers['retry-after'] ?? 0);
  return { kind: 'told', status, code: reason === '' ? codeOf(body) : reason, retryAfterMs };
}

function codeOf(body: string): string {
  try {
    return String((JSON.parse(body) as { code?: unknown }).code);
  } catch {
    return 'unreadable';
  }
}
