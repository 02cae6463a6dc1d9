// The limits of `charges`, each at its value and one past it, with money: how long a quote is honoured, how many payments of
// one payer may be open, and up to which size an answer that its client did not get is kept for it.
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeUpPayment } from '../support/made-up-payment.ts';
import { caughtUp, startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';

const KEPT = 1000;
/** A busy machine takes a second or two from a quote to its payment. */
const TTL_MS = 8000;
const REFUSED = 3;
let paid: PaidTollgate;
const held = new Map<string, () => void>();

beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: ['GET /held/* 0.01', 'GET /priced 0.01', 'POST /sized/* 0.01', 'GET /sized/* 0.01'],
    proxy: `trusted_proxies: [127.0.0.1], limits: { refused_payments_per_client: ${REFUSED} }`,
    more: `charges: { max_unsettled_per_payer: 2, keep_response: ${KEPT}, quote_ttl: ${TTL_MS}ms }`,
    handle: (req, res) => {
      req.resume();
      const { url = '' } = req;
      const size = Number(/^\/sized\/(\d+)/.exec(url)?.[1] ?? 0);
      if (url.startsWith('/held') || size > 0) held.set(url, () => res.end('x'.repeat(size || 1)));
      else res.end('here');
    },
  });
}, 180_000);
afterAll(() => paid?.stop());

const askedFor = (target: string): Promise<() => void> =>
  until(`${target} was asked for`, async () => held.get(target));

describe('max_unsettled_per_payer', () => {
  test('refuses: one open payment more, of the same payer, until one of them is over', async () => {
    const credentialFor = async (target: string): Promise<string> => paid.sign(await paid.quote(target));
    const open = ['/held/1', '/held/2'];
    const answers: Promise<Response>[] = [];
    for (const target of open) {
      answers.push(paid.pay(target, await credentialFor(target)));
      await askedFor(target);
    }
    const third = await paid.pay('/held/3', await credentialFor('/held/3'));
    expect([third.status, ((await third.json()) as { code: string }).code]).toEqual([429, 'too_many_unsettled']);
    expect(held.has('/held/3')).toBe(false);
    for (const [index, target] of open.entries()) {
      held.get(target)?.();
      expect((await answers[index])?.status).toBe(200);
    }
    const again = paid.pay('/held/4', await credentialFor('/held/4'));
    (await askedFor('/held/4'))();
    expect((await again).status).toBe(200);
  });
});

describe('refused_payments_per_client', () => {
  const from = (client: string, init: RequestInit = {}): RequestInit => ({
    ...init,
    headers: { 'x-forwarded-for': client },
  });
  const verified = (): number => paid.facilitator.calls.filter(({ operation }) => operation === 'verify').length;
  const codeOf = async (response: Response): Promise<string> => {
    const { code } = (await response.json()) as { code?: string };
    return response.headers.get('tollgate-reason') ?? code ?? '';
  };

  test('refuses: further payments of a client for what is left of its minute, before the facilitator is asked', async () => {
    const [mallory, alice] = ['198.51.100.1', '198.51.100.2'];
    const terms = { ...(await paid.quote('/priced')) };
    const made = (): string => makeUpPayment(terms, Date.now());
    // Good payments count for nothing.
    for (let i = 0; i <= REFUSED; i++) {
      const good = await paid.sign(await paid.quote('/priced'));
      expect((await paid.pay('/priced', good, from(mallory))).status).toBe(200);
    }
    const [before, since] = [verified(), Date.now()];
    let first = 0;
    for (let i = 0; i < REFUSED; i++) {
      const refused = await paid.pay('/priced', made(), from(mallory));
      expect([refused.status, await codeOf(refused)]).toEqual([402, 'payment_refused: invalid_exact_evm_signature']);
      if (i === 0) first = Date.now();
    }
    expect(verified()).toBe(before + REFUSED);
    const good = await paid.sign(await paid.quote('/priced'));
    for (const credential of [made(), good]) {
      const asked = Date.now();
      const excess = await paid.pay('/priced', credential, from(mallory));
      expect([excess.status, await codeOf(excess)]).toEqual([429, 'too_many_payments']);
      const wait = Number(excess.headers.get('retry-after'));
      // Its minute began with the first refusal, between `since` and `first`.
      expect(wait).toBeGreaterThanOrEqual(Math.ceil((since + 60_000 - Date.now()) / 1000));
      expect(wait).toBeLessThanOrEqual(Math.ceil((first + 60_000 - asked) / 1000));
    }
    expect(verified()).toBe(before + REFUSED);
    // Who only asks is told the price, and nobody else waits: the payment that was turned away is still good.
    expect((await fetch(paid.url('/priced'), from(mallory))).status).toBe(402);
    const other = await paid.pay('/priced', made(), from(alice));
    expect([other.status, await codeOf(other)]).toEqual([402, 'payment_refused: invalid_exact_evm_signature']);
    expect((await paid.pay('/priced', good, from(alice))).status).toBe(200);
    expect(verified()).toBe(before + REFUSED + 2);
  });
});

describe('quote_ttl', () => {
  test('behaviour: the old price is taken while the quote holds, and not after it', async () => {
    const old = await paid.sign(await paid.quote('/priced'));
    const issued = Date.now();
    const token = await paid.cli('token');
    const list = `${paid.tollgate().url('registry')}/v1/billing/protected-routes`;
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const { data } = (await (await fetch(`${list}?q=/priced`, { headers })).json()) as { data: { id: string }[] };
    const reprice = async (amount: string): Promise<number> =>
      (await fetch(`${list}/${data[0]?.id}`, { method: 'PATCH', headers, body: JSON.stringify({ amount }) })).status;
    expect(await reprice('0.02')).toBe(200);
    // The command took its time: a quote made now is young enough.
    const fresh = await paid.sign(await paid.quote('/priced'));
    expect(await reprice('0.03')).toBe(200);
    expect((await paid.pay('/priced', fresh)).status).toBe(200);
    await until('the quotes are old', async () => Date.now() > issued + TTL_MS + 1000);
    const late = await paid.pay('/priced', old);
    expect([late.status, ((await late.json()) as { amount: string }).amount]).toEqual([402, '0.03']);
  });
});

describe('keep_response', () => {
  /** Pays with POST (settled before it is forwarded) and hangs up before the answer is there. */
  const leave = async (target: string, credential: string): Promise<void> => {
    const { hostname, port, host } = new URL(paid.url('/'));
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', () => undefined);
    socket.write(
      `POST ${target} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\nPAYMENT-SIGNATURE: ${credential}\r\n\r\n`,
    );
    const release = await askedFor(target);
    const gone = new Promise((resolve) => {
      socket.on('close', resolve);
    });
    socket.destroy();
    await gone;
    // Seen by Tollgate, too: then it takes the answer in for later.
    await caughtUp(paid.url('/free'));
    release();
  };
  const fetchAgain = (target: string, credential: string): Promise<Response> =>
    until('the answer', async () => {
      const response = await paid.pay(target, credential, { method: 'POST' });
      const code = response.status === 409 ? ((await response.clone().json()) as { code: string }).code : '';
      return code === 'payment_in_use' ? undefined : response;
    });

  test('behaviour: an answer of that size is kept and replayed; one byte more is not, and never charged again', async () => {
    const earned = await paid.earned();
    const [fits, over] = [`/sized/${KEPT}`, `/sized/${KEPT + 1}`];
    for (const [target, status] of [
      [fits, 200],
      [over, 409],
    ] as const) {
      const credential = await paid.sign(await paid.quote(target, 'POST'));
      await leave(target, credential);
      const asked = paid.upstream.seen.length;
      const response = await fetchAgain(target, credential);
      expect([target, response.status]).toEqual([target, status]);
      if (status === 200) expect((await response.text()).length).toBe(KEPT);
      else expect(((await response.json()) as { code: string }).code).toBe('already_paid');
      expect(paid.upstream.seen.length).toBe(asked);
    }
    expect((await paid.earned()) - earned).toBe(20_000n);
  });
});
