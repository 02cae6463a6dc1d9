// Those who buy passes and draw on them: one request after another, each on a connection of its own, each written down.
import { request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { generatePrivateKey } from 'viem/accounts';
import { createPayer, type Payer } from '../../../support/chain/payer.ts';
import { readAnswer } from '../client.ts';
import { fund, USDC, type Door, type World } from '../world.ts';
import type { BoughtPass, Order, PassEnd, PassJournal, PassRequest } from './pass-journal.ts';

/** Longer than a lease, and than a process stands still. */
const PATIENCE_MS = 25_000;
const QUOTE_MS = 2_000;
const PAUSE_MS = 150;
const LONGEST_PAUSE_MS = 1_000;
/** Copies of a payment that go out at once. */
const COPIES = 2;
/** Answers to a payment that is no good any more: another one is signed. */
const REFUSED = /^(payment_refused|settlement_refused|quote_|payment_already_used)/;

/** Ids of what is bought, in the plan. */
const OFFERED = { many: 'many', few: 'few', money: 'money', held: 'many' } as const;

type Shown = Readonly<Record<string, string>>;
export type Answered = { readonly request: PassRequest; readonly token: string | undefined };

/** Sends an order, and writes down what became of it. */
export function sendOrder({ who, url }: Door, journal: PassJournal, order: Order, shown: Shown): Promise<Answered> {
  const { name, conduct, method, isLarge, key, leavesAfterMs = PATIENCE_MS } = order;
  const from = performance.now();
  return new Promise((resolve) => {
    const headers = { ...shown, ...(key === undefined ? {} : { 'idempotency-key': key }) };
    const target = `${url}/paid/${conduct}/${name}${isLarge ? '?size=large' : ''}`;
    const outgoing = request(target, { method, headers, agent: false });
    let over = false;
    const end = (conclusion: PassEnd, token?: string, left?: string): void => {
      if (over) return;
      over = true;
      clearTimeout(patience);
      const seen = { order, who, from, to: performance.now(), left, end: conclusion };
      journal.requests.push(seen);
      outgoing.destroy();
      resolve({ request: seen, token });
    };
    const patience = globalThis.setTimeout(() => end({ kind: 'left' }), leavesAfterMs);
    outgoing.on('error', (error: NodeJS.ErrnoException) =>
      end({ kind: error.code === 'ECONNREFUSED' ? 'refused' : 'broken' }),
    );
    outgoing.on('close', () => end({ kind: 'broken' }));
    outgoing.on('response', (response) => {
      const status = response.statusCode ?? 0;
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', () => end({ kind: 'cut', status }));
      response.on('aborted', () => end({ kind: 'cut', status }));
      response.on('end', () => {
        const { 'tollgate-pass': token, 'tollgate-pass-left': left } = response.headers;
        const answer = readAnswer(status, response.headers, Buffer.concat(parts).toString());
        end(answer, token && String(token), left && String(left));
      });
    });
    outgoing.end();
  });
}

/** What a request on a pass carries. */
export function shownFor({ token, credential }: BoughtPass, { shows }: Order): Shown {
  return shows === 'token' ? { 'tollgate-pass': token } : { 'payment-signature': credential };
}

/** Time for which a client waits before it asks again. */
export function pauseAfter({ request: { end } }: Answered): number {
  if (end.kind === 'served') return 0;
  const told = end.kind === 'told' ? end.retryAfterMs : 0;
  return Math.min(Math.max(PAUSE_MS, told), LONGEST_PAUSE_MS);
}

/** Whether an answer of this status is charged: to a GET it is settled by its status, a POST is settled before it is forwarded. */
export function isChargedAnswer({ method }: Order, status: number): boolean {
  return method === 'GET' ? status >= 200 && status < 300 : status < 500;
}

type Entry = {
  readonly amount: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra: { readonly pass?: { readonly id: string } };
};

/** Buys a pass, whatever happens meanwhile; rejects if `stop` ends it. */
export async function buyPass(
  world: World,
  journal: PassJournal,
  wanted: Pick<BoughtPass, 'index' | 'role' | 'kind'> & Pick<Order, 'method' | 'amount'>,
  stop: AbortSignal,
): Promise<BoughtPass> {
  const { index, role, kind, method, amount: first } = wanted;
  const order: Order = {
    ...{ name: `p${index}.buy`, pass: index, method, conduct: 'small', amount: first, isLarge: false, key: undefined },
    ...{ shows: 'payment', leavesAfterMs: undefined, buys: true },
  };
  journal.orders.set(order.name, order);
  const payer = await createPayer(undefined, 0n);
  const nonces: string[] = [];
  let isFunded = false;
  for (;;) {
    const entry = await quote(world, order, OFFERED[role], stop);
    // Once: a second payment would have nothing to move.
    if (!isFunded) await fund(world.chain, payer.address, BigInt(entry.amount));
    isFunded = true;
    const nonce = generatePrivateKey();
    nonces.push(nonce);
    const credential = await sign(payer, entry, nonce);
    const token = await present(world, journal, { order, credential, stop });
    if (token === undefined) continue;
    const id = await findPass(world, payer.address, stop);
    const { amount } = entry;
    const bought = { ...{ index, role, kind, id, payer: payer.address }, atomic: BigInt(amount), isOver: false };
    return { ...bought, ...{ token, credential, nonces } };
  }
}

/** Shows a payment until it has its pass; undefined: it is no good. */
async function present(
  world: World,
  journal: PassJournal,
  { order, credential, stop }: { readonly order: Order; readonly credential: string; readonly stop: AbortSignal },
): Promise<string | undefined> {
  for (;;) {
    stop.throwIfAborted();
    const shown = { 'payment-signature': credential };
    const copies = Array.from({ length: COPIES }, () => sendOrder(world.door(), journal, order, shown));
    const answers = await Promise.all(copies);
    const token = answers.find((each) => each.token !== undefined)?.token;
    if (token !== undefined) return token;
    if (answers.every(({ request: { end } }) => end.kind === 'told' && REFUSED.test(end.code))) return undefined;
    await setTimeout(Math.max(...answers.map(pauseAfter)));
  }
}

async function quote(world: World, { name, method }: Order, terms: string, stop: AbortSignal): Promise<Entry> {
  for (;;) {
    stop.throwIfAborted();
    const signal = AbortSignal.timeout(QUOTE_MS);
    const response = await fetch(`${world.door().url}/paid/small/${name}`, { method, signal }).catch(() => undefined);
    await response?.arrayBuffer().catch(() => undefined);
    const header = response?.headers.get('payment-required') ?? '';
    if (header !== '') {
      const { accepts } = JSON.parse(Buffer.from(header, 'base64').toString()) as { accepts: readonly Entry[] };
      const entry = accepts.find(({ extra }) => extra.pass?.id === terms);
      if (entry === undefined) throw new Error(`the pass ${terms} is not offered: ${JSON.stringify(accepts)}`);
      return entry;
    }
    await setTimeout(PAUSE_MS);
  }
}

async function sign(payer: Payer, accepted: Entry, nonce: string): Promise<string> {
  const validBefore = BigInt(Math.floor(Date.now() / 1000) + accepted.maxTimeoutSeconds);
  const value = BigInt(accepted.amount);
  const payload = await payer.authorize({ to: accepted.payTo, value, asset: USDC, nonce, validBefore });
  return Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload })).toString('base64');
}

/** The id of the pass that somebody bought, as the registry lists it. */
async function findPass({ ask }: World, payer: string, stop: AbortSignal): Promise<string> {
  for (;;) {
    stop.throwIfAborted();
    const list = await ask('GET', `/v1/billing/passes?payer=${payer}`).catch(() => undefined);
    const { data = [] } = (list ?? {}) as { data?: readonly { readonly id: string }[] };
    const [found, ...others] = data;
    if (others.length > 0) throw new Error(`${payer} bought one pass and has ${data.length}`);
    if (found !== undefined) return found.id;
    await setTimeout(PAUSE_MS);
  }
}
