// Passes at a decision listener: a use is taken of each request that is allowed, of a repeated question once, and of none whose proxy
// left before its answer.
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, questionOf, SECRET, type Decided } from '../support/asker.ts';
import { startPaidTollgate, until, type Accepted, type PaidTollgate } from '../support/paid-tollgate.ts';

let paid: PaidTollgate;

beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: ['GET /thing/* 0.10'],
    more: [
      'selling:',
      '  plans: [{ id: default, passes: [{ id: hundred, amount: "0.50", uses: 100, valid: 30d }] }]',
      `decision: { listen: 127.0.0.1:0, dialect: caddy, secret: ${SECRET} }`,
    ].join('\n'),
    listeners: ['decision'],
  });
}, 180_000);
afterAll(() => paid?.stop());

const asks = (target: string, requestId: string, headers: Readonly<Record<string, string>>): Promise<Decided> =>
  ask(paid.tollgate().port('decision'), 'caddy', { target, requestId, headers });

/** Buys a pass for `target`; resolves with the payment and the token. */
async function buy(target: string): Promise<{ readonly payment: string; readonly token: string }> {
  const demanded = await asks(target, 'demand', {});
  const terms = Buffer.from(demanded.header('payment-required') ?? '', 'base64').toString();
  const [, pass] = (JSON.parse(terms) as { accepts: Accepted[] }).accepts;
  if (pass === undefined) throw new Error(`no pass is sold: ${terms}`);
  const payment = await paid.sign(pass);
  const bought = await asks(target, 'bought', { 'payment-signature': payment });
  expect([bought.allows, bought.header('tollgate-pass-left')]).toEqual([true, '99']);
  return { payment, token: bought.header('tollgate-pass') ?? '' };
}

/** Uses that are left of the pass that was bought last, and those of requests that are under way. */
async function left(): Promise<{ readonly left: string; readonly reserved: string; readonly drawn: string }> {
  const token = await paid.cli('token');
  const answer = await fetch(`${paid.tollgate().url('registry')}/v1/billing/passes`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const [first] = ((await answer.json()) as { data: { left: string; reserved: string; drawn: string }[] }).data;
  if (first === undefined) throw new Error('there is no pass');
  return { left: first.left, reserved: first.reserved, drawn: first.drawn };
}

test('behaviour: a payment that bought a pass is good for questions that join, and takes one use of them all', async () => {
  const { payment } = await buy('/thing/joined');
  const all = await Promise.all([0, 1, 2].map(() => asks('/thing/joined', 'same', { 'payment-signature': payment })));
  const told = all.map(({ status, allows, header }) => [status, allows, header('tollgate-pass-left')]);
  expect(told).toEqual([0, 1, 2].map(() => [200, true, '98']));
});

test('behaviour: a proxy that left before its answer takes no use of a pass', async () => {
  const { token } = await buy('/thing/left');
  const port = paid.tollgate().port('decision');
  const leave = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write(questionOf('caddy', { target: '/thing/left', headers: { 'tollgate-pass': token } }));
        setTimeout(() => {
          socket.resetAndDestroy();
          resolve();
        }, 0);
      });
      socket.on('error', reject);
    });
  await Promise.all(Array.from({ length: 20 }, leave));
  await until('nothing is reserved', async () => (await left()).reserved === '0');
  // Some may have been answered before the proxy was seen to leave.
  const { left: rest, drawn } = await left();
  expect(Number(rest)).toBe(100 - Number(drawn));
  expect((await asks('/thing/left', 'later', { 'tollgate-pass': token })).header('tollgate-pass-left')).toBe(
    String(Number(rest) - 1),
  );
});
