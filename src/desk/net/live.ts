// An event stream that is kept open: it resumes where it ended, waits longer after each failure, and says whether it is on.
import type { DeskClient } from './client.ts';
import { createEventParser, type ServerEvent } from './event-reader.ts';

export type LiveState = 'connecting' | 'on' | 'waiting' | 'absent';

type LiveOptions = {
  readonly client: DeskClient;
  readonly path: string;
  readonly take: (event: ServerEvent) => void;
  readonly tell: (state: LiveState) => void;
};

const LONGEST_PAUSE_MS = 30_000;

/** Opens the stream until the returned function is called. */
export function openLive({ client, path, take, tell }: LiveOptions): () => void {
  const closing = new AbortController();
  const { signal } = closing;
  let lastId = '';
  let failures = 0;
  const parse = createEventParser((event) => {
    lastId = event.id === '' ? lastId : event.id;
    take(event);
  });
  const once = async (): Promise<'again' | 'never'> => {
    tell('connecting');
    const headers = { Accept: 'text/event-stream', ...(lastId === '' ? {} : { 'Last-Event-ID': lastId }) };
    const response = await client.open(path, { headers, signal });
    if (response === null) return 'again';
    if (response.status === 404 || response.status === 401 || response.status === 403) return 'never';
    if (!response.ok || response.body === null) return 'again';
    tell('on');
    failures = 0;
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return 'again';
      parse(decoder.decode(value, { stream: true }));
    }
  };
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      const end = await once().catch((): 'again' => 'again');
      if (signal.aborted) return;
      if (end === 'never') return tell('absent');
      tell('waiting');
      await pause(Math.min(LONGEST_PAUSE_MS, 500 * 2 ** failures), signal);
      failures += 1;
    }
  };
  void run();
  return () => closing.abort();
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
