// GET /v1/receivers and POST /v1/receivers/{id}/check over HTTP: what is told of receivers, and what never is.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { UNASKED } from '../../src/domain/payment/service-health.ts';
import type { ReceiverFinding } from '../../src/registry/receivers/receiver-services.ts';
import { receiverOf } from '../cases/receivers.ts';
import { facilitatorAt } from '../gateway/rails/kit.ts';
import { LEDGER_KEY, LIST, SDK_KEY, startRegistry, type Kit, type Reply } from './kit.ts';

const [HEADER, USER, QUERY, TOKEN, NODE] = [
  'header-secret',
  'user-secret',
  'query-secret',
  'token-secret',
  'node-secret',
];
const PAY_TO = `0x${'1'.repeat(40)}`;
const AT = Date.UTC(2026, 2, 10);

const secretive = {
  ...facilitatorAt(`https://${USER}@pay.example.com:8443/key-in-the-path?k=${QUERY}`),
  ...{ headers: { 'X-Api-Key': HEADER }, auth: { kind: 'bearer', token: TOKEN } as const, account: 'default' },
};
const receiver = receiverOf({
  payTo: PAY_TO,
  facilitators: [secretive, facilitatorAt('https://second.example.com')],
  rpcUrls: [`https://node.example.com/v2/${NODE}`],
});
const other = { ...receiverOf({ payTo: PAY_TO, rpcUrls: [] }), id: 'other' };

let kit: Kit;
let findings: readonly ReceiverFinding[] = [];
const asked: string[] = [];
beforeAll(async () => {
  kit = await startRegistry({
    settings: { receivers: new Map([receiver, other].map((each) => [each.id, each])) },
    receiverServices: {
      health: async () => ({
        facilitator: ({ url }) =>
          url.includes('second')
            ? UNASKED
            : {
                status: 'failing',
                sinceMs: AT,
                askedMs: AT,
                lastError: 'it cannot be reached',
                durationsMs: [10, 20, 90],
              },
        node: () => 'ok',
      }),
      check: async ({ id }) => {
        asked.push(id);
        return findings;
      },
    },
  });
  for (const [pattern, to] of [['/a'], ['/b', 'default'], ['/c', 'other']])
    await kit.dashboard('POST', LIST, {
      body: { route_pattern: pattern, method: 'GET', amount: '1', currency: 'USD', receiver_config_id: to },
    });
});
afterAll(() => kit.close());

type Body = { readonly data: readonly Record<string, unknown>[] } & Record<string, unknown>;
const bodyOf = ({ body }: Reply): Body => JSON.parse(body.toString()) as Body;
const check = (id: string, auth?: string): Promise<Reply> =>
  auth === undefined
    ? kit.dashboard('POST', `/v1/receivers/${id}/check`)
    : kit.ask('POST', `/v1/receivers/${id}/check`, { auth });

test('behaviour: receivers are told with their ways, how their services stand and how many routes pay them', async () => {
  const reply = await kit.dashboard('GET', '/v1/receivers');
  expect(reply.status).toBe(200);
  const [first, second] = bodyOf(reply).data;
  expect(first).toEqual({
    ...{ id: receiver.id, currencies: [...receiver.currencies], routes: 2 },
    ways: [
      {
        ...{ scheme: 'exact', network: 'eip155:84532', network_name: 'base-sepolia', testnet: true, symbol: 'USDC' },
        ...{ asset: expect.stringMatching(/^0x/), decimals: 6, pay_to_address: PAY_TO },
        address_url: `https://sepolia.basescan.org/address/${PAY_TO}`,
        facilitators: [
          {
            ...{ host: 'pay.example.com:8443', auth: 'bearer', status: 'failing', since: '2026-03-10T00:00:00.000Z' },
            ...{ last_error: 'it cannot be reached', p50_ms: 20 },
          },
          { host: 'second.example.com', auth: null, status: 'unasked', since: null, last_error: null, p50_ms: null },
        ],
        rpc: { host: 'node.example.com', status: 'ok' },
      },
    ],
  });
  expect(second).toMatchObject({ id: 'other', routes: 1, ways: [{ rpc: null }] });
});

test('attack: nothing of a URL but its host, and no header or key, is in an answer about receivers', async () => {
  const text = (await kit.dashboard('GET', '/v1/receivers')).body.toString();
  for (const secret of [HEADER, USER, QUERY, TOKEN, NODE, 'key-in-the-path', '/v2/'])
    expect(text).not.toContain(secret);
});

test('behaviour: a receiver is checked once in ten seconds, whoever asks; another one meanwhile', async () => {
  findings = [
    { level: 'ok', detail: 'fine' },
    { level: 'warning', detail: 'odd' },
  ];
  const [one, two] = await Promise.all([check('default'), check('default')]);
  expect(new Set([one.status, two.status])).toEqual(new Set([200, 429]));
  const [done, early] = one.status === 200 ? [one, two] : [two, one];
  expect(bodyOf(done)).toEqual({ ok: true, findings, checked_at: expect.stringMatching(/^20.*Z$/) });
  expect(early.json.code).toBe('too_many_requests');
  expect(Number(early.headers['retry-after'])).toBeGreaterThan(0);
  expect(Number(early.headers['retry-after'])).toBeLessThanOrEqual(10);
  findings = [{ level: 'cannot_serve', detail: 'no' }];
  expect(bodyOf(await check('other'))).toMatchObject({ ok: false, findings });
  expect(asked).toEqual(['default', 'other']);
  kit.clock.advance(10_000);
  findings = [{ level: 'away', detail: 'gone' }];
  expect(bodyOf(await check('default'))).toMatchObject({ ok: false });
  const audited = bodyOf(await kit.dashboard('GET', '/v1/audit?kind=receiver.checked')).data;
  expect(audited.map(({ subject, to }) => [subject, to])).toEqual([
    ['default', { ok: false }],
    ['other', { ok: false }],
    ['default', { ok: true }],
  ]);
});

test('refuses: a check of a receiver that is not configured, or by a key of a program', async () => {
  expect((await check('nobody')).status).toBe(404);
  for (const key of [SDK_KEY, LEDGER_KEY]) expect((await check('default', key)).status).toBe(401);
  expect(asked).toHaveLength(3);
});
