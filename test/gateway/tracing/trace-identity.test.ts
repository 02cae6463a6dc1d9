// Which requests are traced: by a trusted caller's flag, else by the share that is configured.
import { expect, test } from 'vitest';
import { createSampler } from '../../../src/gateway/tracing/trace-identity.ts';
import { createRandom } from '../../../src/host/clock.ts';
import { createTraceReader, type Trace } from '../../../src/host/identifiers.ts';

const random = createRandom();
const readTrace = createTraceReader(random, Date.now);
const PARENT = 'b7ad6b7169203331';
const traceOf = (traceId: string, flags: string): Trace =>
  readTrace(undefined, `00-${traceId}-${PARENT}-${flags}`, 'vendor=1');
const NO_TRACE = readTrace(undefined, undefined, undefined);
const samplerOf = (sample: number, key = 'a key') => createSampler({ sample, key, random });
const newId = (): string => random(16).toString('hex');

test('behaviour: the flag of a trusted caller decides, whatever the share', () => {
  const traceId = newId();
  const identity = { traceId, parentId: PARENT, traceState: 'vendor=1' };
  for (const sample of [0, 1]) {
    expect(samplerOf(sample)(traceOf(traceId, '01'), true)).toEqual(identity);
    expect(samplerOf(sample)(traceOf(traceId, '03'), true)).toEqual(identity);
    expect(samplerOf(sample)(traceOf(traceId, '00'), true)).toBeUndefined();
  }
});

test("attack: a stranger's flag fills no collector", () => {
  expect(samplerOf(0)(traceOf(newId(), '01'), false)).toBeUndefined();
  const ids = Array.from({ length: 2000 }, newId);
  const traced = ids.filter((id) => samplerOf(0.05)(traceOf(id, '01'), false) !== undefined);
  expect(traced.length).toBeGreaterThan(40);
  expect(traced.length).toBeLessThan(200);
});

test('attack: no choice of trace ids is always traced, and each id is traced by all who share a key or by none', () => {
  const low = Array.from({ length: 2000 }, () => `${newId().slice(0, 16)}0000000000000001`);
  const high = Array.from({ length: 2000 }, () => `0000000000000001${newId().slice(0, 16)}`);
  for (const ids of [low, high]) {
    const traced = ids.filter((id) => samplerOf(0.05)(traceOf(id, '00'), false) !== undefined);
    expect(traced.length).toBeGreaterThan(40);
    expect(traced.length).toBeLessThan(200);
    expect(ids.filter((id) => samplerOf(0.05)(traceOf(id, '01'), false) !== undefined)).toEqual(traced);
    expect(ids.filter((id) => samplerOf(0.05, 'another')(traceOf(id, '01'), false) !== undefined)).not.toEqual(traced);
  }
});

test('behaviour: a request without a trace begins one, for the share that is configured', () => {
  const begun = Array.from({ length: 4000 }, () => samplerOf(0.25)(NO_TRACE, false)).filter(
    (each) => each !== undefined,
  );
  expect(begun.length).toBeGreaterThan(800);
  expect(begun.length).toBeLessThan(1200);
  expect(new Set(begun.map(({ traceId }) => traceId)).size).toBe(begun.length);
  for (const { traceId, parentId } of begun)
    expect([traceId, parentId]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), undefined]);
  expect(samplerOf(0)(NO_TRACE, true)).toBeUndefined();
  expect(samplerOf(1)(NO_TRACE, false)).toBeDefined();
});
