// How a facilitator stands for people: by its last call, with why it failed and since when, and never with a secret.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { joinHealth, medianMs, UNASKED } from '../../../src/domain/payment/service-health.ts';
import {
  FRESH,
  GO,
  SIGNED,
  facilitatorAt,
  json,
  makeOffer,
  makeRail,
  read,
  startScripted,
  type Scripted,
} from './kit.ts';

const PAYER = SIGNED.authorization.from;
const SECRET = 'a-secret-of-the-headers';
const VALID = { isValid: true, payer: PAYER };
const REFUSED = { isValid: false, invalidReason: 'insufficient_funds', payer: PAYER };

/** A clock by hand that begins with the real time: answers carry a date. */
function handClock() {
  let now = Date.now();
  return { clock: { now: () => now, monotonic: () => now }, advance: (ms: number) => void (now += ms) };
}

let scripted: Scripted;
beforeEach(async () => {
  scripted = await startScripted((_, res) => json(res, VALID));
});
afterEach(() => scripted.close());

test('behaviour: the health of a facilitator is that of its last call, and names why and since when', async () => {
  const time = handClock();
  const facilitator = { ...facilitatorAt(scripted.url), headers: { 'X-Key': SECRET } };
  const offer = makeOffer({ facilitators: [facilitator] });
  const { rail } = makeRail({ clock: time.clock });
  const presented = read(rail, offer, SIGNED);
  const after = async (body: unknown, status = 200) => {
    scripted.answer = (_, res) => json(res, body, status);
    time.advance(100);
    await rail.verify(presented, offer);
    const { durationsMs, sinceMs, askedMs, ...rest } = rail.healthOf(facilitator);
    return {
      ...rest,
      answers: durationsMs.length,
      agoMs: time.clock.now() - (sinceMs ?? 0),
      asked: askedMs === time.clock.now(),
    };
  };
  expect(rail.healthOf(facilitator)).toEqual(UNASKED);
  const fine = { status: 'ok', lastError: null, asked: true };
  expect(await after(VALID)).toEqual({ ...fine, answers: 1, agoMs: 0 });
  expect(await after(REFUSED)).toEqual({ ...fine, answers: 2, agoMs: 100 });
  const unauthorized = await after({ error: `no ${SECRET}` }, 401);
  expect(unauthorized).toMatchObject({ status: 'unauthorized', answers: 2, agoMs: 0 });
  expect(unauthorized.lastError).toBe('status 401: it does not know who calls; check auth');
  expect(await after({ error: SECRET }, 403)).toMatchObject({ status: 'unauthorized', agoMs: 100 });
  expect(await after({}, 429)).toMatchObject({ status: 'failing', agoMs: 0, lastError: expect.any(String) });
  expect(await after({ nonsense: SECRET })).toMatchObject({ status: 'failing', agoMs: 100 });
  expect(JSON.stringify(rail.healthOf(facilitator))).not.toContain(SECRET);
  expect(await after(VALID)).toEqual({ ...fine, answers: 3, agoMs: 0 });
  for (let n = 0; n < 120; n++) await after(VALID);
  expect(rail.healthOf(facilitator).durationsMs).toHaveLength(100);
});

test('behaviour: a facilitator that is left alone rests, one that refuses our key is unauthorized, until it answers', async () => {
  const time = handClock();
  const facilitator = facilitatorAt(scripted.url);
  const offer = makeOffer({ facilitators: [facilitator] });
  const { rail } = makeRail({ clock: time.clock });
  const presented = read(rail, offer, SIGNED);
  const statusAfter = async (calls: number, body: unknown, status = 200): Promise<string> => {
    scripted.answer = (_, res) => json(res, body, status);
    for (let n = 0; n < calls; n++) await rail.verify(presented, offer);
    return rail.healthOf(facilitator).status;
  };
  expect(await statusAfter(4, {}, 429)).toBe('failing');
  expect(await statusAfter(1, {}, 429)).toBe('resting');
  // Left alone, it is not called; that says nothing new.
  const before = rail.healthOf(facilitator);
  expect(await statusAfter(1, VALID)).toBe('resting');
  expect(rail.healthOf(facilitator)).toBe(before);
  time.advance(60_000);
  expect(await statusAfter(1, VALID)).toBe('ok');
  expect(await statusAfter(5, {}, 403)).toBe('unauthorized');
  time.advance(60_000);
  scripted.answer = (_, res) => json(res, VALID);
  await rail.settle(presented, offer, FRESH, GO);
  expect(rail.healthOf(facilitator).status).not.toBe('unauthorized');
});

test('behaviour: of several processes the one that called last says how a facilitator stands', () => {
  const known = { ...UNASKED, durationsMs: [1, 3] };
  const joined = joinHealth([
    { ...known, status: 'failing', sinceMs: 5, askedMs: 10, lastError: 'away' },
    { ...known, status: 'ok', sinceMs: 1, askedMs: 20 },
    UNASKED,
  ]);
  expect(joined).toEqual({ status: 'ok', sinceMs: 1, askedMs: 20, lastError: null, durationsMs: [1, 3, 1, 3] });
  expect(joinHealth([])).toEqual(UNASKED);
  expect([medianMs([]), medianMs([7]), medianMs([9, 1, 5]), medianMs([4.44, 1])]).toEqual([null, 7, 5, 1]);
});
