// An event stream as an async iterator (Server-Sent Events, HTML standard section 9.2.6). EventSource sends no Authorization, so
// it is read from a fetch. A stream that breaks off, or says nothing for three heartbeats, is opened again with `Last-Event-ID`.
import { problemOf, TollgateError } from './problem.ts';

/** Every type of event of a stream, with its data. */
export type EventOf<E> = {
  [T in keyof E]: { readonly type: T; readonly id: string; readonly data: E[T] };
}[keyof E];

type Told = { readonly type: string; readonly id: string; readonly data: unknown };
type Options = {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
};
type Open = (headers: Readonly<Record<string, string>>, signal: AbortSignal) => Promise<Response>;

const SHORTEST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** The registry sends something every 15 seconds. */
const LONGEST_SILENCE_MS = 45_000;
/** What a header can carry back. */
const HEADER_VALUE = /^[\x21-\x7e]*$/;

export async function* openEvents(
  open: Open,
  { headers = {}, signal: given }: Options,
): AsyncGenerator<Told, void, undefined> {
  const closing = new AbortController();
  const { signal } = closing;
  const giveUp = (): void => closing.abort(given?.reason);
  given?.throwIfAborted();
  given?.addEventListener('abort', giveUp);
  const state: StreamState = { lastId: undefined, retryMs: SHORTEST_PAUSE_MS };
  let failures = 0;
  let wasOpen = false;
  try {
    for (;;) {
      let atLeastMs = 0;
      const last = state.lastId === undefined ? {} : { 'Last-Event-ID': state.lastId };
      try {
        const response = await open({ ...headers, Accept: 'text/event-stream', ...last }, signal);
        if (response.ok && response.body !== null) {
          [wasOpen, failures] = [true, 0];
          yield* readEvents(response.body, state);
        } else if (wasOpen && isPassing(response.status)) {
          atLeastMs = 1000 * (Number(response.headers.get('Retry-After')) || 0);
          await response.body?.cancel();
        } else throw new TollgateError(await problemOf(response), response);
      } catch (error) {
        if (signal.aborted || !wasOpen || error instanceof TollgateError) throw error;
      }
      await pause(Math.max(atLeastMs, Math.min(LONGEST_PAUSE_MS, state.retryMs * 2 ** failures)), signal);
      failures += 1;
    }
  } finally {
    given?.removeEventListener('abort', giveUp);
    closing.abort();
  }
}

type StreamState = {
  /** The id of the last event that had one. */
  lastId: string | undefined;
  /** How long the stream itself asks to wait before it is opened again. */
  retryMs: number;
};

/** Whether a refusal may be over when it is asked again. */
function isPassing(status: number): boolean {
  return status === 429 || status >= 500;
}

/** The events of one connection; ends when it ends, and rejects if it breaks or falls silent. */
async function* readEvents(
  body: ReadableStream<Uint8Array>,
  state: StreamState,
): AsyncGenerator<Told, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let type = '';
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await within(LONGEST_SILENCE_MS, reader.read());
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line === '') {
          if (data.length > 0)
            yield { type: type === '' ? 'message' : type, id: state.lastId ?? '', data: valueOf(data.join('\n')) };
          [type, data] = ['', []];
          continue;
        }
        const [, field = line, text = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
        if (field === 'data') data.push(text);
        else if (field === 'event') type = text;
        else if (field === 'id' && HEADER_VALUE.test(text)) state.lastId = text;
        else if (field === 'retry' && /^\d{1,6}$/.test(text)) state.retryMs = Number(text);
      }
    }
  } finally {
    // Nobody waits for the end of what nobody reads any more.
    reader.cancel().catch(() => undefined);
  }
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Rejects if `promise` takes longer. */
function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the stream fell silent')), ms);
    promise.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}

/** Rejects with the signal's reason when it is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}
