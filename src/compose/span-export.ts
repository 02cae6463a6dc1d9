// Tracing that sends its spans to a collector: joins the wrappers of the gateway with the queue and the client that export.
import { hash } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { createTracing, type Tracing } from '../gateway/tracing/tracing.ts';
import { systemSchedule } from '../host/clock.ts';
import { createExporter, SPAN_RESULTS } from '../host/otlp/exporter.ts';
import { createPost } from '../host/otlp/post.ts';
import { writeEnvelope } from '../host/otlp/span.ts';
import type { TracingDeps } from './tracing.ts';

/** Time at a stop for spans that are left. */
const CLOSING_MS = 2_000;

export function exportSpans(
  { charges }: Pick<Config, 'charges'>,
  { endpoint, headers, serviceName, sample, attributes }: NonNullable<Config['otlp']>,
  { current, metrics, closers, log, clock, random, version }: TracingDeps,
): Tracing {
  const counted = metrics.counter('otlp_spans_total', 'Spans, by what became of them.', ['result']);
  for (const result of SPAN_RESULTS) counted(result)(0);
  const client = createPost({
    ...{ url: endpoint, headers, userAgent: `tollgate/${version}` },
    ...{ schedule: systemSchedule, now: clock.now },
  });
  const exporter = createExporter({
    post: client.post,
    envelope: writeEnvelope(
      [['service.name', serviceName], ['service.version', version], ...Object.entries(attributes)],
      { name: 'tollgate', version },
    ),
    schedule: systemSchedule,
    monotonic: clock.monotonic,
    fraction: () => random(4).readUInt32LE() / 2 ** 32,
    counted: (result, spans) => counted(result)(spans),
    log,
  });
  // After everything that still ends spans.
  closers.addLast(async () => {
    await exporter.close(CLOSING_MS);
    client.close();
  });
  // Replicas share this secret, so that they trace the same traces; the secret itself goes nowhere.
  const key = hash('sha256', `trace sampling\n${charges.secrets[0] ?? ''}`);
  return createTracing({
    ...{ sample, key, clock, random, add: exporter.add },
    patternOf: (routeId) => current.snapshot?.matcher.get(routeId)?.pattern,
  });
}
