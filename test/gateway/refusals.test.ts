// What a process remembers of the requests that it refused: the last so many, newest first, and nothing of their queries.
import { describe, expect, test } from 'vitest';
import { createRefusals, rememberRefusals } from '../../src/gateway/refusals.ts';
import type { RequestOutcome } from '../../src/domain/totals/request-counts.ts';
import { createTelemetry, type RequestRecord } from '../../src/gateway/telemetry.ts';
import { createLog } from '../../src/host/log.ts';
import { createMetrics } from '../../src/host/metrics.ts';

function recordOf(requestId: string, wanted: Partial<RequestRecord> = {}): RequestRecord {
  return {
    startedAt: 1,
    method: 'GET',
    requestId,
    path: '/a',
    target: '/a?secret=canary',
    outcome: 'refused' as RequestOutcome,
    status: 400,
    reason: 'target_ambiguous',
    ended: false,
    ...wanted,
  } as RequestRecord;
}

const any = (): boolean => true;

describe('refusals', () => {
  test('behaviour: the last refusals are found, newest first, as many as are asked for', () => {
    const refusals = createRefusals(3);
    expect(refusals.find(any, 10)).toEqual([]);
    for (const id of ['1', '2', '3', '4', '5']) refusals.add(recordOf(id), 1000);
    expect(refusals.find(any, 10).map(({ requestId }) => requestId)).toEqual(['5', '4', '3']);
    expect(refusals.find(any, 2).map(({ requestId }) => requestId)).toEqual(['5', '4']);
    expect(refusals.find(({ requestId }) => requestId === '2', 10)).toEqual([]);
  });

  test('behaviour: several refusals of one request id are all found', () => {
    const refusals = createRefusals();
    for (const path of ['/a', '/b', '/c']) refusals.add(recordOf('same', { path }), 1000);
    expect(refusals.find(({ requestId }) => requestId === 'same', 10).map(({ path }) => path)).toEqual([
      '/c',
      '/b',
      '/a',
    ]);
  });

  test('attack: a refusal keeps neither a query nor more than 256 characters of a path', () => {
    const refusals = createRefusals();
    refusals.add(recordOf('1', { path: `/${'a'.repeat(5000)}`, target: `/${'a'.repeat(5000)}?canary` }), 1000);
    const [refusal] = refusals.find(any, 1);
    expect(refusal?.path).toHaveLength(256);
    expect(JSON.stringify(refusal)).not.toContain('canary');
  });

  test.each<[RequestOutcome, boolean]>([
    ['payment_required', true],
    ['refused', true],
    ['error', true],
    ['free', false],
    ['paid', false],
  ])('behaviour: a request that ends as %s is remembered as a refusal: %j, once', (outcome, remembered) => {
    const refusals = createRefusals();
    const telemetry = createTelemetry(
      createMetrics(),
      createLog('error', () => undefined, Date.now),
      { snapshot: undefined, cacheTotals: () => ({ hits: 0, misses: 0 }) },
      { config: { metrics: { maxRoutes: 1 }, log: { access: false } } },
      { refused: rememberRefusals(refusals, { now: () => 1000 }) },
    );
    const record = recordOf('1', { outcome });
    telemetry.end(record, 2);
    telemetry.end(record, 3);
    expect(refusals.find(any, 10).map(({ at }) => at)).toEqual(remembered ? [999] : []);
  });
});
