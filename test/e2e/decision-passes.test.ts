// Passes at a decision listener: a use is taken of each request that is allowed, of a repeated question once, and of none whose proxy
// left before its answer.
import { hash } from 'node:crypto';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, questionOf, SECRET, type Decided } from '../support/asker.ts';
import { startPaidTollgate, until, type Accepted, type PaidTollgate } from '../support/paid-tollgate.ts';
import { temporaryFolder } from '../support/process.ts';

let paid: PaidTollgate;
const files = temporaryFolder();
const KEY = 'key-of-a-partner-0001';
const keys = files.write('keys.txt', `${hash('sha256', KEY)} acme\n`);

beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: ['GET /thing/* 0.10'],
    proxy: 'customer_header_trusted: true',
    more: [
      'selling:',
      '  plans:',
      '    - id: default',
      '      customers: [partners]',
      '      passes: [{ id: hundred, amount: "0.50", uses: 100, valid: 30d }]',
      '      free: { requests: 3, window: month, by: customer }',
      `  customers: [{ id: partners, header: X-Api-Key, keys_file: ${keys}, quota: { requests: 2, window: month } }]`,
      `decision: { listen: 127.0.0.1:0, dialect: caddy, secret: ${SECRET} }`,
    ].join('\n'),
    listeners: ['decision'],
  });
}, 180_000);
afterAll(async () => {
  await paid?.stop();
  files.remove();
});

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

// nginx asks once more, with the same request id, for each internal redirect: try_files to a named location, index, error_page.
test('behaviour: a question that its proxy repeats takes one use of a pass, and one of another target or request its own', async () => {
  const { token, payment } = await buy('/thing/repeated');
  const bought = await asks('/thing/repeated', 'bought', { 'payment-signature': payment });
  expect([bought.allows, bought.header('tollgate-pass-left')]).toEqual([true, '99']);
  const draw = async (target: string, requestId: string): Promise<(string | boolean | undefined)[]> => {
    const { allows, header } = await asks(target, requestId, { 'tollgate-pass': token });
    return [allows, header('tollgate-pass-left'), header('tollgate-use-id')];
  };
  const [, left, use] = await draw('/thing/repeated', 'one');
  expect(left).toBe('98');
  for (let repeat = 0; repeat < 8; repeat++) expect(await draw('/thing/repeated', 'one')).toEqual([true, '98', use]);
  const tenth = await asks('/thing/repeated', 'one', { 'tollgate-pass': token });
  expect([tenth.status, JSON.parse(tenth.body)]).toMatchObject([409, { code: 'idempotency_conflict' }]);
  expect(tenth.body).not.toContain('Idempotency-Key');
  expect((await draw('/thing/repeated?other', 'one')).slice(0, 2)).toEqual([true, '97']);
  expect((await draw('/thing/repeated', 'two')).slice(0, 2)).toEqual([true, '96']);
});

test('behaviour: a question that its proxy repeats counts once as a free request, and once of a customer’s quota', async () => {
  const free = async (requestId: string): Promise<unknown[]> => {
    const { status, header } = await asks('/thing/free', requestId, { 'x-customer-id': 'somebody' });
    return [status, header('tollgate-free-left')?.split(';')[0]];
  };
  const counted = [
    await free('f1'),
    await free('f1'),
    await free('f2'),
    await free('f3'),
    await free('f3'),
    await free('f4'),
  ];
  expect(counted).toEqual([
    [200, '2'],
    [200, '2'],
    [200, '1'],
    [200, '0'],
    [200, '0'],
    [402, undefined],
  ]);
  // A proxy that gives every request one id gives nothing away by it.
  const often = await Promise.all(
    Array.from({ length: 20 }, () => asks('/thing/free', 'f', { 'x-customer-id': 'often' })),
  );
  expect(often.filter(({ status }) => status === 402).length).toBeGreaterThan(0);
  const known = async (requestId: string): Promise<unknown[]> => {
    const { status, header } = await asks('/thing/known', requestId, { 'x-api-key': KEY });
    return [status, header('tollgate-reason')];
  };
  const all = [await known('q1'), await known('q1'), await known('q2'), await known('q2'), await known('q3')];
  expect(all.map(([status]) => status)).toEqual([200, 200, 200, 200, 402]);
  expect(all.at(-1)).toEqual([402, 'customer_quota_used_up']);
});
