// An OTLP collector on loopback: takes batches of spans, holds each to a strict schema of OTLP's JSON, and keeps what it was
// sent, as text too. It can be told how to answer, or to leave.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';

const hex = (digits: number) => z.string().regex(new RegExp(`^(?!0+$)[0-9a-f]{${digits}}$`));
const nanoseconds = z.string().regex(/^1\d{18}$/);
const value = z.union([
  z.strictObject({ stringValue: z.string() }),
  z.strictObject({ intValue: z.string().regex(/^-?\d+$/) }),
  z.strictObject({ doubleValue: z.number() }),
]);
const attributes = z
  .array(z.strictObject({ key: z.string().min(1), value }))
  .refine((all) => new Set(all.map(({ key }) => key)).size === all.length, 'an attribute stands twice');
const span = z
  .strictObject({
    traceId: hex(32),
    spanId: hex(16),
    parentSpanId: hex(16).optional(),
    traceState: z.string().optional(),
    flags: z.union([z.literal(0x101), z.literal(0x301)]),
    name: z.string().min(1),
    kind: z.union([z.literal(1), z.literal(2), z.literal(3)]),
    startTimeUnixNano: nanoseconds,
    endTimeUnixNano: nanoseconds,
    attributes,
    status: z.strictObject({ code: z.literal(2).optional() }),
  })
  .refine((each) => BigInt(each.startTimeUnixNano) <= BigInt(each.endTimeUnixNano), 'it ends before it begins');
const batch = z.strictObject({
  resourceSpans: z
    .array(
      z.strictObject({
        resource: z.strictObject({ attributes }),
        scopeSpans: z
          .array(
            z.strictObject({
              scope: z.strictObject({ name: z.literal('tollgate'), version: z.string() }),
              spans: z.array(span).min(1).max(512),
            }),
          )
          .length(1),
      }),
    )
    .length(1),
});

export type SeenSpan = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client';
  readonly hasRemoteParent: boolean;
  readonly isError: boolean;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number | bigint>>;
};

const KINDS = { 1: 'internal', 2: 'server', 3: 'client' } as const;

type Answer = { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string };

export type Collector = {
  readonly url: string;
  /** Every span that was taken, in the order of arrival. */
  readonly spans: readonly SeenSpan[];
  /** Resource attributes of the last batch. */
  readonly resource: () => Readonly<Record<string, string | number | bigint>>;
  /** Everything that was ever sent here, decompressed. */
  readonly text: () => string;
  /** Headers and path of each request. */
  readonly requests: readonly { readonly url: string; readonly headers: IncomingMessage['headers'] }[];
  /** Answers the next requests with these, one each; `hold` never answers. */
  readonly answer: (...answers: readonly (Answer | 'hold')[]) => void;
  /** What was wrong with batches. */
  readonly faults: readonly string[];
  /** The first span, past or to come, that `accepts`. */
  readonly span: (accepts: (span: SeenSpan) => boolean) => Promise<SeenSpan>;
  readonly leave: () => Promise<void>;
  readonly comeBack: () => Promise<void>;
};

export async function startCollector(): Promise<Collector> {
  const spans: SeenSpan[] = [];
  const requests: { url: string; headers: IncomingMessage['headers'] }[] = [];
  const faults: string[] = [];
  const answers: (Answer | 'hold')[] = [];
  const waiting = new Set<{ accepts: (span: SeenSpan) => boolean; resolve: (span: SeenSpan) => void }>();
  let text = '';
  let resource: SeenSpan['attributes'] = {};

  const take = (body: Buffer): void => {
    const [sent] = batch.parse(JSON.parse(body.toString())).resourceSpans;
    resource = read(sent?.resource.attributes ?? []);
    for (const raw of sent?.scopeSpans.flatMap((scope) => scope.spans) ?? []) {
      const seen: SeenSpan = {
        ...{ traceId: raw.traceId, spanId: raw.spanId, parentSpanId: raw.parentSpanId, name: raw.name },
        ...{ kind: KINDS[raw.kind], hasRemoteParent: raw.flags === 0x301, isError: raw.status.code === 2 },
        startMs: Number(BigInt(raw.startTimeUnixNano) / 1000n) / 1000,
        endMs: Number(BigInt(raw.endTimeUnixNano) / 1000n) / 1000,
        attributes: read(raw.attributes),
      };
      spans.push(seen);
      for (const each of waiting) {
        if (!each.accepts(seen)) continue;
        waiting.delete(each);
        each.resolve(seen);
      }
    }
  };
  const handle = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    requests.push({ url: req.url ?? '', headers: req.headers });
    const body = gunzipSync(Buffer.concat(chunks));
    text += body.toString();
    const told = answers.shift();
    if (told === 'hold') return;
    if (told === undefined || told.status === 200) take(body);
    res.writeHead(told?.status ?? 200, { 'content-type': 'application/json', ...told?.headers });
    res.end(told?.body ?? '{}');
  };
  const server = createServer((req, res) => {
    handle(req, res).catch((error: unknown) => {
      faults.push(String(error));
      res.writeHead(400).end();
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    ...{ spans, requests, faults },
    resource: () => resource,
    text: () => text,
    answer: (...told) => void answers.push(...told),
    span: (accepts) => {
      const known = spans.find(accepts);
      return known === undefined ? new Promise((resolve) => waiting.add({ accepts, resolve })) : Promise.resolve(known);
    },
    leave: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
    comeBack: async () => void (await once(server.listen(port, '127.0.0.1'), 'listening')),
  };
}

function read(all: z.output<typeof attributes>): SeenSpan['attributes'] {
  return Object.fromEntries(
    all.map(({ key, value: held }) => [
      key,
      'stringValue' in held ? held.stringValue : 'intValue' in held ? BigInt(held.intValue) : held.doubleValue,
    ]),
  );
}
