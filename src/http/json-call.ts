// Makes one JSON call over a transport, for a service of our own: a bounded response, read whole, within one deadline.
// It never rejects: it tells what went wrong, and whether any of the request may have reached the service. The
// transport follows no redirect, and repeats only what may be repeated.
import type { Transport, UpstreamCall } from './transport.ts';

export type JsonRequest = {
  readonly method: 'GET' | 'POST' | 'PATCH';
  /** Origin-form. */
  readonly target: string;
  /** Flat name, value pairs: Host and credentials; what describes the body is added. */
  readonly headers: readonly string[];
  readonly json?: unknown;
  readonly withinMs: number;
};

type JsonResponse =
  | {
      readonly kind: 'response';
      readonly status: number;
      /** Time of the answer by the service's own clock, in whole seconds; undefined if it does not say. */
      readonly dateMs: number | undefined;
      readonly json: unknown;
    }
  /** A response that is not JSON of the allowed size. */
  | { readonly kind: 'unusable'; readonly status: number; readonly detail: string }
  | {
      readonly kind: 'failed';
      /** Words for the log; holds nothing of what was sent or received. */
      readonly detail: string;
      /** Says whether the request may have reached the service; false: it is certain that nothing did. */
      readonly sent: boolean;
    };

export type JsonCall = (request: JsonRequest) => Promise<JsonResponse>;

type JsonCallOptions = {
  readonly transport: Transport;
  /** Largest body of a response. */
  readonly maxBytes: number;
  /** Runs `run` after `ms`; what is returned cancels it. */
  readonly schedule: (ms: number, run: () => void) => () => void;
};

export function createJsonCall({ transport, maxBytes, schedule }: JsonCallOptions): JsonCall {
  return (request) =>
    new Promise((resolve) => {
      const chunks: Buffer[] = [];
      let size = 0;
      let status = 0;
      let dateMs: number | undefined;
      let call: UpstreamCall | undefined;
      const end = (response: JsonResponse): void => {
        cancel();
        call?.abort();
        resolve(response);
      };
      const tooLarge = (): void => end({ kind: 'unusable', status, detail: `more than ${maxBytes} bytes` });
      const cancel = schedule(request.withinMs, () =>
        end({ kind: 'failed', detail: 'it did not answer in time', sent: true }),
      );
      call = transport.send(toUpstream(request), {
        onInformation: () => undefined,
        onHead: (received, headers) => {
          status = received;
          const date = Date.parse(valueOf(headers, 'date') ?? '');
          dateMs = Number.isNaN(date) ? undefined : date;
          const coding = valueOf(headers, 'content-encoding')?.toLowerCase() ?? 'identity';
          if (coding !== 'identity') end({ kind: 'unusable', status, detail: 'an encoding that was not asked for' });
          else if (Number(valueOf(headers, 'content-length') ?? 0) > maxBytes) tooLarge();
        },
        onData: (chunk) => {
          size += chunk.length;
          if (size > maxBytes) tooLarge();
          else chunks.push(chunk);
        },
        onEnd: () => end(readJson(status, dateMs, chunks)),
        onUpgrade: (_headers, socket) => void socket.destroy(),
        onFailure: ({ detail, sent }) => end({ kind: 'failed', detail, sent }),
      });
    });
}

function toUpstream({ method, target, headers, json }: JsonRequest): Parameters<Transport['send']>[0] {
  const sent = [...headers, 'Accept', 'application/json'];
  if (json === undefined) return { method, target, headers: sent, body: undefined, upgrade: false };
  const text = JSON.stringify(json);
  const length = Buffer.byteLength(text);
  sent.push('Content-Type', 'application/json', 'Content-Length', String(length));
  const body = length === text.length ? text : Buffer.from(text).toString('latin1');
  return { method, target, headers: sent, body, upgrade: false };
}

function readJson(status: number, dateMs: number | undefined, chunks: readonly Buffer[]): JsonResponse {
  try {
    return { kind: 'response', status, dateMs, json: JSON.parse(Buffer.concat(chunks).toString()) };
  } catch {
    return { kind: 'unusable', status, detail: 'no JSON' };
  }
}

function valueOf(headers: readonly string[], wanted: string): string | undefined {
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === wanted);
  return at < 0 ? undefined : headers[at + 1];
}
