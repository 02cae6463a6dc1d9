// Facilitators that want to know who calls: one that looks at every token as the real ones do, and what becomes of payments
// while it takes no call.
import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { watchFacilitators } from '../../../src/compose/facilitators.ts';
import { readSigningKey } from '../../../src/config/signing-keys.ts';
import type { Facilitator, FacilitatorAuth } from '../../../src/domain/payment/offer.ts';
import { checkReceivers } from '../../../src/gateway/rails/online-check.ts';
import { createAuthorize } from '../../../src/gateway/rails/x402/auth.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { createMetrics } from '../../../src/host/metrics.ts';
import {
  createDoorkeeper,
  newCdpAccount,
  newPayaiAccount,
  type Account,
  type NewAccount,
} from '../../support/callers.ts';
import {
  facilitatorAt,
  fakeTime,
  FRESH,
  GO,
  json,
  makeOffer,
  makeRail,
  makeReceiver,
  offerOf,
  read,
  SIGNED,
  startScripted,
  type Scripted,
} from './kit.ts';

const PAYER = SIGNED.authorization.from;
const HASH = `0x${'9a'.repeat(32)}`;
const KIND = { x402Version: 2, scheme: 'exact', network: 'eip155:84532' };
const PRESENTED = read(makeRail().rail, makeOffer(), SIGNED);

const opened: Scripted[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()));
});

/** One that takes calls of `account` alone, and whose clock is `aheadMs` ahead. */
async function startGuarded(account: Account, aheadMs = 0): Promise<Scripted & { readonly refused: string[] }> {
  const now = (): number => Date.now() + aheadMs;
  const keep = createDoorkeeper(account, now);
  const refused: string[] = [];
  const scripted = await startScripted((req, res) => {
    res.setHeader('date', new Date(now()).toUTCString());
    const why = keep(req);
    if (why !== undefined) {
      refused.push(why);
      return json(res, { errorType: 'unauthorized', errorMessage: 'no', correlationId: 'x' }, 401);
    }
    const path = req.url?.replace(/^.*\//, '');
    if (path === 'supported') return json(res, { kinds: [KIND] });
    if (path === 'settle') return json(res, { success: true, transaction: HASH, network: KIND.network, payer: PAYER });
    return json(res, { isValid: true, payer: PAYER });
  });
  opened.push(scripted);
  return { ...scripted, refused };
}

async function startPlain(): Promise<Scripted> {
  const scripted = await startScripted((_, res) => json(res, { isValid: true, payer: PAYER }));
  opened.push(scripted);
  return scripted;
}

function authOf({ account, keyId, secret }: NewAccount): FacilitatorAuth {
  const kind = account.kind === 'payai' ? 'payai' : 'cdp';
  const key = readSigningKey(kind, secret);
  if (typeof key === 'string') throw new Error(key);
  return { kind, keyId, key };
}
const withAuth = (url: string, auth: FacilitatorAuth): Facilitator => ({
  ...facilitatorAt(url),
  auth,
  account: auth.kind === 'bearer' ? 'default' : auth.keyId,
});
const cdp = newCdpAccount('pem');
const stranger = newCdpAccount('pem', cdp.keyId);

describe('one that looks at everything', () => {
  test.each<[string, Account, FacilitatorAuth]>([
    ['bearer', { kind: 'bearer', token: 'tok-1' }, { kind: 'bearer', token: 'tok-1' }],
    ['CDP, P-256', cdp.account, authOf(cdp)],
    ...[newCdpAccount('ed25519')].map((made): [string, Account, FacilitatorAuth] => [
      'CDP, Ed25519',
      made.account,
      authOf(made),
    ]),
    ...[newPayaiAccount()].map((made): [string, Account, FacilitatorAuth] => ['PayAI', made.account, authOf(made)]),
  ])(
    'behaviour: a facilitator with %s verifies and settles as often as it is asked, below any path',
    async (_, account, auth) => {
      const guarded = await startGuarded(account);
      for (const url of [guarded.url, `${guarded.url}/platform/v2/x402/`]) {
        const { rail, calls } = makeRail();
        const offer = makeOffer({ facilitators: [withAuth(url, auth)] });
        await Promise.all(Array.from({ length: 8 }, () => rail.verify(PRESENTED, offer)));
        expect(await rail.settle(PRESENTED, offer, FRESH, GO)).toMatchObject({ kind: 'settled' });
        expect(calls).toEqual([...Array<string>(8).fill('verify:ok'), 'settle:ok']);
      }
      expect(guarded.refused).toEqual([]);
    },
  );

  test('behaviour: check --online asks a facilitator with tokens too, and nothing is wrong', async () => {
    const guarded = await startGuarded(cdp.account);
    const receiver = makeReceiver({ facilitators: [withAuth(guarded.url, authOf(cdp))] });
    const authorize = createAuthorize(systemClock, randomBytes);
    expect(await checkReceivers([receiver], { fetch, clock: systemClock, authorize, v1: false })).toMatchObject([
      { level: 'ok' },
    ]);
    expect(guarded.requests.map(({ url }) => url)).toEqual(['/supported', '/verify']);
    expect(guarded.refused).toEqual([]);
  });
});

describe('a call that is not taken', () => {
  const ANSWERS: readonly [string, number, Readonly<Record<string, string>>, string][] = [
    ['a key that it does not know', 401, {}, 'unauthorized'],
    ['an account that is not paid', 402, {}, 'payment_required'],
    ['a key that may not', 403, {}, 'forbidden'],
    ['no such endpoint', 404, {}, 'not_carried_out'],
    ['too many calls', 429, { 'retry-after': '20' }, 'rate_limited'],
  ];
  test.each(ANSWERS)(
    'behaviour: a call that is answered with %s (%d): the next facilitator is asked, once, and alone 503',
    async (_, status, headers, result) => {
      const [first, second] = await Promise.all([startPlain(), startPlain()]);
      first.answer = (_req, res) => {
        for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
        json(res, { errorType: 'x' }, status);
      };
      second.answer = (req, res) =>
        json(res, req.url === '/settle' ? { success: true, transaction: HASH } : { isValid: true, payer: PAYER });
      const { rail, calls } = makeRail();
      const both = makeOffer({ facilitators: [facilitatorAt(first.url), facilitatorAt(second.url)] });
      const alone = makeOffer({ facilitators: [facilitatorAt(first.url)] });
      expect(await rail.verify(PRESENTED, both)).toMatchObject({ kind: 'valid' });
      expect(await rail.settle(PRESENTED, both, FRESH, GO)).toMatchObject({ kind: 'settled' });
      const authorization = { ...SIGNED.authorization, nonce: `0x${'ee'.repeat(32)}` };
      const unverified = read(rail, both, { ...SIGNED, authorization });
      expect(await rail.settle(unverified, both, FRESH, GO)).toMatchObject({ kind: 'settled' });
      expect(await rail.verify(PRESENTED, alone)).toMatchObject({ kind: 'unavailable' });
      expect(await rail.settle(PRESENTED, alone, FRESH, GO)).toMatchObject({
        kind: 'not_carried_out',
        reason: 'facilitator_unavailable',
      });
      expect(calls).toEqual([
        `verify:${result}`,
        'verify:ok',
        'settle:ok',
        `settle:${result}`,
        'settle:ok',
        `verify:${result}`,
        `settle:${result}`,
      ]);
    },
  );

  test('behaviour: five refused calls in a row, with no other answer between, leave a facilitator alone; after 429 not before its Retry-After', async () => {
    const time = fakeTime();
    const plain = await startPlain();
    const { rail, calls } = makeRail({ schedule: time.schedule, clock: time.clock });
    const facilitator = facilitatorAt(plain.url);
    const offer = makeOffer({ facilitators: [facilitator] });
    const limit: Scripted['answer'] = (_, res) => {
      res.setHeader('retry-after', '20');
      json(res, {}, 429);
    };
    const fine = plain.answer;
    const open = (): string | undefined => rail.standing([facilitator])[0]?.open;
    plain.answer = limit;
    for (let call = 0; call < 4; call++) await rail.verify(PRESENTED, offer);
    plain.answer = fine;
    await rail.verify(PRESENTED, offer);
    plain.answer = limit;
    for (let call = 0; call < 4; call++) await rail.verify(PRESENTED, offer);
    expect(open()).toBeUndefined();
    await rail.verify(PRESENTED, offer);
    expect(open()).toBe('rate_limited');
    const asked = plain.requests.length;
    expect(await rail.verify(PRESENTED, offer)).toMatchObject({ kind: 'unavailable', retryAfterMs: 20_000 });
    time.advance(19_999);
    await rail.verify(PRESENTED, offer);
    expect(plain.requests).toHaveLength(asked);
    plain.answer = fine;
    time.advance(1);
    expect(await rail.verify(PRESENTED, offer)).toMatchObject({ kind: 'valid' });
    expect(open()).toBeUndefined();
    expect(calls.filter((call) => call === 'verify:skipped')).toHaveLength(2);
  });

  test('attack: a Retry-After of a day leaves a facilitator alone for 30 seconds, not longer', async () => {
    const time = fakeTime();
    const plain = await startPlain();
    plain.answer = (_, res) => {
      res.setHeader('retry-after', '86400');
      json(res, {}, 429);
    };
    const { rail } = makeRail({ schedule: time.schedule, clock: time.clock });
    const offer = makeOffer({ facilitators: [facilitatorAt(plain.url)] });
    for (let call = 0; call < 5; call++) await rail.verify(PRESENTED, offer);
    time.advance(30_000);
    await rail.verify(PRESENTED, offer);
    expect(plain.requests).toHaveLength(6);
  });

  test('behaviour: a verdict under 402 is a verdict, and counts as an answer', async () => {
    const plain = await startPlain();
    plain.answer = (_, res) => json(res, { isValid: false, invalidReason: 'insufficient_funds' }, 402);
    const { rail } = makeRail();
    const facilitator = facilitatorAt(plain.url);
    const offer = makeOffer({ facilitators: [facilitator] });
    for (let call = 0; call < 6; call++) {
      expect(await rail.verify(PRESENTED, offer)).toEqual({ kind: 'refused', reason: 'insufficient_funds' });
    }
    expect(rail.standing([facilitator])).toMatchObject([{ open: undefined }]);
  });

  test('behaviour: a key that is refused takes nothing from another key at the same URL', async () => {
    const guarded = await startGuarded(cdp.account);
    const right = withAuth(guarded.url, authOf(cdp));
    const wrong = {
      ...withAuth(guarded.url, { ...authOf(stranger), keyId: 'wrong-key' } as FacilitatorAuth),
      account: 'wrong-key',
    };
    const { rail, lines } = makeRail();
    for (let call = 0; call < 5; call++) await rail.verify(PRESENTED, makeOffer({ facilitators: [wrong] }));
    expect(guarded.refused).toEqual(Array(5).fill('signature'));
    expect(await rail.verify(PRESENTED, makeOffer({ facilitators: [right] }))).toMatchObject({ kind: 'valid' });
    const { host } = new URL(guarded.url);
    expect(rail.standing([right, wrong])).toEqual([
      { name: `${host} ${cdp.keyId}`, open: undefined },
      { name: `${host} wrong-key`, open: 'unauthorized' },
    ]);
    expect(rail.standing([wrong])).toEqual([{ name: host, open: 'unauthorized' }]);
    expect(lines.join('\n')).toContain('"account":"wrong-key"');
    expect(lines.filter((line) => line.includes('a facilitator is left alone'))).toHaveLength(1);
  });

  test.each([300_000, -300_000])(
    'behaviour: a clock that is off by five minutes (%d ms) is named, with the seconds',
    async (aheadMs) => {
      const guarded = await startGuarded(cdp.account, aheadMs);
      const { rail, calls, lines } = makeRail();
      const facilitator = withAuth(guarded.url, authOf(cdp));
      await rail.verify(PRESENTED, makeOffer({ facilitators: [facilitator] }));
      expect(guarded.refused).toEqual(['time']);
      expect(calls).toEqual(['verify:clock_skew']);
      const line =
        lines.find((each) => each.includes('the clock of this machine is not that of the facilitator')) ?? '';
      const seconds = (JSON.parse(line) as { seconds_ahead: number }).seconds_ahead;
      expect(Math.abs(seconds + aheadMs / 1000)).toBeLessThanOrEqual(2);
      const authorize = createAuthorize(systemClock, randomBytes);
      const [finding] = await checkReceivers([makeReceiver({ facilitators: [facilitator] })], {
        fetch,
        clock: systemClock,
        authorize,
        v1: false,
      });
      expect(finding).toMatchObject({
        level: 'cannot_serve',
        detail: expect.stringContaining('set the clock of this machine'),
      });
    },
  );

  test('behaviour: check --online names a wrong key', async () => {
    const guarded = await startGuarded(cdp.account);
    const receiver = makeReceiver({ facilitators: [withAuth(guarded.url, authOf(stranger))] });
    const authorize = createAuthorize(systemClock, randomBytes);
    const [finding] = await checkReceivers([receiver], { fetch, clock: systemClock, authorize, v1: false });
    expect(finding).toEqual({
      receiver: 'default',
      level: 'cannot_serve',
      detail: `the facilitator ${new URL(guarded.url).host} takes no call with the key ${cdp.keyId}: status 401: it does not know who calls; check auth`,
    });
  });
});

test('behaviour: metrics and /readyz?verbose name a facilitator that is left alone, and the process stays ready', async () => {
  const plain = await startPlain();
  plain.answer = (_, res) => json(res, {}, 401);
  const { rail } = makeRail();
  const metrics = createMetrics();
  const receivers = [makeReceiver({ facilitators: [facilitatorAt(plain.url)] })];
  const watched = watchFacilitators(() => ({ receivers }), rail.standing, metrics);
  const gauge = async (): Promise<string[]> => (await metrics.text()).match(/^tollgate_facilitator_open\{.*$/gm) ?? [];
  const { host } = new URL(plain.url);
  expect([await watched.check.run(), watched.isCallable(), await gauge()]).toEqual([
    { ok: true, detail: 'none is left alone; whether they answer stands under services' },
    true,
    [],
  ]);
  for (let call = 0; call < 5; call++) await rail.verify(PRESENTED, offerOf(receivers[0] ?? makeReceiver()));
  expect([await watched.check.run(), watched.isCallable(), await gauge()]).toEqual([
    {
      ok: false,
      isTolerated: true,
      detail: `left alone for a while, one call at a time tries: ${host} (unauthorized)`,
    },
    false,
    [`tollgate_facilitator_open{facilitator="${host}",reason="unauthorized"} 1`],
  ]);
  receivers.push(makeReceiver({ id: 'other', facilitators: [facilitatorAt('http://127.0.0.1:1')] }));
  expect(watched.isCallable()).toBe(true);
});

test('attack: a redirect is not followed with a token', async () => {
  const elsewhere = await startPlain();
  const plain = await startPlain();
  plain.answer = (req, res) => {
    res.writeHead(307, { location: `${elsewhere.url}${req.url}` });
    res.end();
  };
  const { rail } = makeRail();
  await rail.verify(PRESENTED, makeOffer({ facilitators: [withAuth(plain.url, authOf(cdp))] }));
  expect(plain.requests).toHaveLength(1);
  expect(elsewhere.requests).toEqual([]);
});
