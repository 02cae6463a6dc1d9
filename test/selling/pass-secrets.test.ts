// What a pass is worth over time: to the second of its end, through a rotation of the secrets that sign it, and no further than
// the plan, the route and the time that were paid for.
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPassTokens } from '../../src/domain/selling/pass-token.ts';
import { makeUpPayment } from '../support/made-up-payment.ts';
import { buyPass, leftOf, offerOf, present, tokenOf } from './bought-passes.ts';
import { codeOf, startPlans, type Answer, type PlanKit } from './kit.ts';

const [FIRST, SECOND] = ['first-secret-of-the-passes-of-32-bytes', 'second-secret-of-the-passes-32-bytes'];
const PARTNER = 'the-key-of-a-partner';
const OFFERED = [
  '{ id: minute, amount: "0.20", seconds: 60 }',
  '{ id: ten, amount: "0.50", uses: 10, valid: 1m }',
  '{ id: here, amount: "0.60", seconds: 3600, scope: route }',
].join(', ');
const text = (secrets: readonly string[], plans = OFFERED): string =>
  [
    'selling:',
    '  plans:',
    `    - { id: api, passes: [${plans}] }`,
    '    - { id: other, passes: [{ id: minute, amount: "0.20", seconds: 60 }] }',
    '    - { id: brief, passes: [{ id: second, amount: "0.25", seconds: 1 }, { id: hour, amount: "0.30", seconds: 3600 }] }',
    '    - { id: ordered, customers: [partners], passes: [{ id: hour, amount: "0.30", seconds: 3600 }, { id: two, amount: "0.40", uses: 2 }, { id: money, amount: "0.70", credit: "0.80", valid: 1h, scope: route }] }',
    '    - { id: freely, free: { requests: 1, window: day }, passes: [{ id: hour, amount: "0.30", seconds: 3600 }] }',
    '  customers: [{ id: partners, header: X-Api-Key, keys_file: keys.txt }]',
    `charges: { secrets: [${secrets.map((each) => `"${each}"`).join(', ')}] }`,
    'routes:',
    '  - { method: GET, route_pattern: "/a", amount: "0.10", plan_id: api }',
    '  - { method: GET, route_pattern: "/b", amount: "0.10", plan_id: api }',
    '  - { method: GET, route_pattern: "/other", amount: "0.10", plan_id: other }',
    '  - { method: GET, route_pattern: "/brief", amount: "0.10", plan_id: brief }',
    '  - { method: GET, route_pattern: "/ordered", amount: "0.10", plan_id: ordered }',
    '  - { method: GET, route_pattern: "/freely", amount: "0.10", plan_id: freely }',
    '  - { method: GET, route_pattern: "/named", amount: "0.10", plan_id: other, allow_anonymous: false }',
  ].join('\n');

let kit: PlanKit;
beforeAll(async () => {
  const digest = createHash('sha256').update(PARTNER).digest('hex');
  kit = await startPlans(text([FIRST]), { files: { 'keys.txt': digest } });
});
afterAll(() => kit?.close());

async function buy(pass: string, target = '/a'): Promise<string> {
  const { answer } = await buyPass(kit, target, pass);
  if (answer.status !== 200) throw new Error(`${pass} was not sold: ${answer.status}`);
  return tokenOf(answer);
}
const use = (token: string, target = '/a'): Promise<Answer> => present(kit, target, token);
const reasonOf = ({ status, headers }: Answer): unknown => [status, headers['tollgate-reason']];

describe('the end of a pass', () => {
  test('behaviour: a pass by seconds lives for all of them, and ends with the second in which they are over', async () => {
    for (const [fraction, id, seconds, target] of [
      [0, 'minute', 60, '/a'],
      [1, 'minute', 60, '/a'],
      [999, 'minute', 60, '/a'],
      [999, 'second', 1, '/brief'],
    ] as const) {
      kit.hold(fraction);
      const token = await buy(id, target);
      expect(leftOf(await use(token, target))).toBe(`${seconds}s`);
      kit.pass(seconds * 1000 - 1);
      const last = await use(token, target);
      expect([fraction, last.status, leftOf(last)]).toEqual([fraction, 200, '1s']);
      // A token tells whole seconds: never less than was paid for, and less than a second more.
      kit.pass(1 + (fraction === 0 ? 0 : 1000 - fraction));
      expect([fraction, reasonOf(await use(token, target))]).toEqual([fraction, [402, 'pass_expired']]);
    }
  });

  test('behaviour: a pass by uses lives until its moment, and what is left then is gone', async () => {
    kit.hold(500);
    const token = await buy('ten');
    kit.pass(60_000 - 1);
    expect((await use(token)).status).toBe(200);
    kit.pass(1);
    expect(reasonOf(await use(token))).toEqual([402, 'pass_expired']);
  });

  test('attack: a token with a later end, another kind, scope, plan or charge is not ours', async () => {
    const token = await buy('here');
    const bytes = Buffer.from(token.slice(5), 'base64url');
    // Every byte is signed: the head (kind and scope, key, end, plan), the charge, and the signature itself.
    const answers: unknown[] = [];
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ (at % 2 === 0 ? 0x01 : 0x80);
      answers.push(reasonOf(await use(`pass_${changed.toString('base64url')}`)));
    }
    expect(new Set(answers.map(String))).toEqual(new Set(['402,pass_unknown']));
    expect(answers).toHaveLength(bytes.length);
    expect((await use(token)).status).toBe(200);
    expect(reasonOf(await use(token, '/b'))).toEqual([402, 'pass_scope']);
    expect(reasonOf(await use(token, '/other'))).toEqual([402, 'pass_scope']);
  });

  test('behaviour: a pass stays good under its own terms if the plan sells it no more, or for another price', async () => {
    const [minute, ten] = [await buy('minute'), await buy('ten')];
    await kit.reload(text([FIRST], '{ id: minute, amount: "9.00", seconds: 1 }'));
    expect((await use(minute)).status).toBe(200);
    expect(leftOf(await use(ten))).toBe('8');
    kit.pass(59_000);
    expect((await use(minute)).status).toBe(200);
    await kit.reload(text([FIRST]));
  });

  test('attack: a pass that is revoked once no plan sells passes any more is let in nowhere within ten seconds', async () => {
    const sold = await startPlans(text([FIRST]), { files: { 'keys.txt': '' } });
    try {
      const { answer } = await buyPass(sold, '/brief', 'hour');
      await sold.reload(text([FIRST]).replaceAll(/, passes: \[\{.*?\}\]/g, ''));
      expect((await present(sold, '/brief', tokenOf(answer))).status).toBe(200);
      const { data } = JSON.parse((await sold.dashboard('GET', '/v1/billing/passes')).body) as {
        data: { id: string }[];
      };
      await sold.dashboard('POST', `/v1/billing/passes/${data[0]?.id}/revoke`);
      const used = async (): Promise<unknown> => reasonOf(await present(sold, '/brief', tokenOf(answer)));
      await expect.poll(used, { timeout: 30_000 }).toEqual([402, 'pass_revoked']);
    } finally {
      await sold.close();
    }
  });
});

describe('secrets that change', () => {
  test('behaviour: a new secret beside the old one reads both, signs by the first, and an old one that is gone refuses', async () => {
    kit.pass(3_600_000);
    const keyIdOf = (token: string): number => Buffer.from(token.slice(5), 'base64url')[1] ?? 0;
    const old = { minute: await buy('here'), ten: await buy('ten') };
    const both = async (status: number, tokens: Record<string, string>): Promise<void> => {
      for (const [id, token] of Object.entries(tokens)) expect([id, (await use(token)).status]).toEqual([id, status]);
    };
    // Every replica has to read by the new one before any signs by it.
    await kit.reload(text([FIRST, SECOND]));
    await both(200, old);
    const between = await buy('here');
    expect(keyIdOf(between)).toBe(keyIdOf(old.minute));
    await kit.reload(text([SECOND, FIRST]));
    const next = { minute: await buy('here'), ten: await buy('ten') };
    expect(keyIdOf(next.minute)).not.toBe(keyIdOf(old.minute));
    await both(200, { ...old, between });
    await both(200, { a: next.minute, b: next.ten });
    await kit.reload(text([SECOND]));
    for (const token of [old.minute, old.ten, between])
      expect(reasonOf(await use(token))).toEqual([402, 'pass_unknown']);
    await both(200, next);
    // A secret that comes back reads what it signed.
    await kit.reload(text([SECOND, FIRST]));
    await both(200, old);
  });

  test('attack: a token that is signed with an unknown secret under the id of a known one is not ours', async () => {
    const token = await buy('minute');
    const bytes = Buffer.from(token.slice(5), 'base64url');
    const known = createPassTokens([SECOND, FIRST]).read(token);
    expect(known?.kind).toBe('seconds');
    for (let tries = 0; tries < 20; tries++) {
      const forger = createPassTokens([`a-secret-of-somebody-else-32-bytes-${tries}`]);
      const forged = Buffer.from(
        forger
          .write({
            ...{
              kind: 'seconds',
              seconds: 1e6,
              planId: 'api',
              termsId: 'minute',
              validMs: 1,
              first: '0',
              scope: 'plan',
            },
            ...{
              passId: '',
              chargeId: known?.passId.replace('pass_', 'chg_') ?? '',
              routeId: '',
              payer: '',
              network: '',
            },
            ...{ soldAtMs: 0, endsAtMs: kit.now() + 1e9, amount: '0.20', currency: 'USD' },
          })
          .slice(5),
        'base64url',
      );
      forged[1] = bytes[1] ?? 0;
      expect(reasonOf(await use(`pass_${forged.toString('base64url')}`))).toEqual([402, 'pass_unknown']);
    }
  });
});

describe('the place of a pass among the ways to pass', () => {
  const partner = { 'x-api-key': PARTNER };
  const ask = (headers: Record<string, string>): Promise<Answer> => kit.ask('/ordered', { headers });
  const access = (): unknown => kit.told()['tollgate-access'];

  test('behaviour: customers come before a pass, which is not read then; a pass before a payment, which is not taken then', async () => {
    const bad = await ask({ ...partner, 'tollgate-pass': 'no token' });
    expect([bad.status, access()]).toEqual([200, 'customer']);
    const token = await buy('two', '/ordered');
    const known = await ask({ ...partner, 'tollgate-pass': token });
    expect([known.status, access(), leftOf(known)]).toEqual([200, 'customer', undefined]);
    const payment = makeUpPayment(await offerOf(kit, '/ordered', undefined), kit.now());
    const calls = kit.facilitated.length;
    const both = await ask({ 'tollgate-pass': token, 'payment-signature': payment });
    expect([both.status, access(), leftOf(both), kit.facilitated.length]).toEqual([200, 'pass', '0', calls]);
    // The payment is as good as it was.
    const paid = await ask({ 'tollgate-pass': token, 'payment-signature': payment });
    expect([paid.status, access(), leftOf(paid)]).toEqual([200, 'paid', undefined]);
  });

  test('behaviour: a pass that is no good lets the order go on: to a payment, to a free request, and to a 402 that says why', async () => {
    const wrong = { 'tollgate-pass': `pass_${'A'.repeat(152)}` };
    const freely = (headers: Record<string, string>): Promise<Answer> => kit.ask('/freely', { headers });
    const free = await freely(wrong);
    expect([free.status, access(), free.headers['tollgate-free-left']]).toEqual([
      200,
      'free',
      expect.stringMatching(/^0; /),
    ]);
    expect(reasonOf(await freely(wrong))).toEqual([402, 'pass_unknown']);
    const payment = makeUpPayment(await offerOf(kit, '/freely', undefined), kit.now());
    const paid = await freely({ ...wrong, 'payment-signature': payment });
    expect([paid.status, access()]).toEqual([200, 'paid']);
  });

  test('refuses: a pass without a customer id, or with one that cannot be read, on a route that wants one', async () => {
    const token = await buy('minute', '/other');
    const named = (id: string | readonly string[]): Promise<Answer> =>
      present(kit, '/named', token, { headers: { 'x-customer-id': id } });
    const asked = kit.upstream.seen.length;
    for (const id of [[], '', ' ', 'a b', 'x'.repeat(129), ['bob', 'bob']]) {
      const refused = await named(id);
      expect([refused.status, codeOf(refused)]).toEqual([400, 'customer_required']);
    }
    expect(kit.upstream.seen).toHaveLength(asked);
    for (const id of ['b', 'x'.repeat(128)]) expect((await named(id)).status).toBe(200);
  });

  test('behaviour: an entry of a pass says what it gives, where it is good and for how long', async () => {
    const said = await Promise.all(
      ['hour', 'two', 'money'].map(async (id) => (await offerOf(kit, '/ordered', id)).extra.pass),
    );
    expect(said).toEqual([
      { id: 'hour', seconds: 3600, scope: 'plan', valid: 3600 },
      { id: 'two', uses: 2, scope: 'plan', valid: 365 * 86_400 },
      { id: 'money', credit: '0.80', scope: 'route', valid: 3600 },
    ]);
  });

  test('refuses: a fifth pass of a plan to one payer at a time, at no charge; one that is over makes room', async () => {
    const payer = `0x${randomBytes(20).toString('hex')}`;
    const pay = async (pass: string): Promise<Answer> =>
      ask({ 'payment-signature': makeUpPayment(await offerOf(kit, '/ordered', pass), kit.now(), payer) });
    for (const pass of ['hour', 'two', 'money', 'hour']) expect((await pay(pass)).status).toBe(200);
    const settled = (): number => kit.facilitated.filter((call) => call === 'settle').length;
    const before = settled();
    const fifth = await pay('two');
    expect([fifth.status, (JSON.parse(fifth.body) as { code: string }).code, settled()]).toEqual([
      ...[429, 'too_many_passes'],
      before,
    ]);
    // A single request is no pass.
    const single = makeUpPayment(await offerOf(kit, '/ordered', undefined), kit.now(), payer);
    expect((await ask({ 'payment-signature': single })).status).toBe(200);
    kit.pass(3_600_000);
    expect((await pay('two')).status).toBe(200);
  });
});
