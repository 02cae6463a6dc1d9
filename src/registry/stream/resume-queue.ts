// Streams that resume, one after the other. Each is sent a page of what it missed and has its next turn once its reader
// took it, so a slow reader keeps nobody waiting and holds one page. After a few milliseconds requests have their turn.
// A stream that missed more than the whole set is told to read the set.
import { setImmediate } from 'node:timers/promises';
import { createChangePages, PAGE_CHANGES, type ChangePage } from './change-pages.ts';
import { askWhoMay, TURN_MS, type EventStream, type AccessCheck } from './event-stream.ts';
import { writeReset } from './event-text.ts';
import type { RouteEvent } from '../routes/route-index.ts';

type ResumeQueue = {
  readonly add: (stream: EventStream) => void;
  readonly remove: (stream: EventStream) => void;
  /** Forgets what it read of the log: it is another one. */
  readonly forget: () => void;
};

type ResumeOptions = {
  readonly routes: {
    readonly head: () => { readonly revision: number };
    /** Number of routes. */
    readonly count: () => number;
    readonly changesAfter: (revision: number, limit: number) => Promise<readonly RouteEvent[] | 'too_old'>;
  };
  readonly stillAllowed: AccessCheck;
  readonly drop: (stream: EventStream) => void;
  /** Called with a stream that was sent everything. */
  readonly onLive: (stream: EventStream) => void;
};

/** Number of missed changes that are told however small the set is. */
const LEAST_TOLD = PAGE_CHANGES;

export function createResumeQueue({ routes, stillAllowed, drop, onLive }: ResumeOptions): ResumeQueue {
  const { head, count, changesAfter } = routes;
  const pages = createChangePages({ head, changesAfter });
  const queue = new Set<EventStream>();
  let working = false;

  const missesTooMuch = ({ seen, isLost }: EventStream): boolean =>
    isLost || head().revision - seen > Math.max(LEAST_TOLD, count());
  const needsPage = (stream: EventStream): boolean => stream.seen !== head().revision && !missesTooMuch(stream);

  const goLive = (stream: EventStream): void => {
    stream.state = 'live';
    onLive(stream);
  };
  const send = (stream: EventStream, revision: number, text: Buffer | string): void => {
    Object.assign(stream, { seen: revision, isLost: false, state: 'sending' });
    if (stream.res.write(text)) add(stream);
    else
      stream.res.once('drain', () => {
        stream.waits = 0;
        add(stream);
      });
  };
  /** Sends a page of what comes after what the stream has seen; undefined: the log cannot tell it. */
  const sendPage = (stream: EventStream, page: ChangePage | undefined): void => {
    const { revision } = head();
    if (page === undefined) {
      send(stream, revision, writeReset(revision));
      return;
    }
    // A change that is written and not in force here yet is told later.
    const last = Math.min(page.last, revision);
    if (last <= stream.seen) goLive(stream);
    else send(stream, last, page.upTo(last));
  };

  /** Sends until the turn is over or a page has to be read; `read` is the one for the first of them. */
  const takeTurn = (allowed: ReadonlyMap<string, boolean>, read: PageRead | undefined): void => {
    const until = performance.now() + TURN_MS;
    for (const stream of queue) {
      const { revision } = head();
      const isRead = read !== undefined && read.after === stream.seen;
      const page = isRead ? read.page : pages.kept(stream.seen);
      const mayListen = allowed.get(stream.key) !== false;
      if (mayListen && needsPage(stream) && page === undefined && !isRead) return;
      queue.delete(stream);
      if (!mayListen) drop(stream);
      else if (missesTooMuch(stream)) send(stream, revision, writeReset(revision));
      else if (stream.seen === revision) goLive(stream);
      else sendPage(stream, page);
      if (performance.now() > until) return;
    }
  };

  const work = async (): Promise<void> => {
    for (;;) {
      const [first] = queue;
      if (first === undefined) break;
      let read: PageRead | undefined;
      const after = first.seen;
      if (needsPage(first) && pages.kept(after) === undefined) {
        try {
          read = { after, page: await pages.read(after) };
        } catch {
          // The store is away: those that need it come back and ask again.
          for (const stream of queue) if (needsPage(stream)) drop(stream);
        }
      }
      // A store that cannot say who may listen ends the stream.
      takeTurn(await askWhoMay(queue, stillAllowed, false), read);
      await setImmediate();
    }
    working = false;
  };
  const add = (stream: EventStream): void => {
    // The stream was closed while its reader took the last page.
    if (stream.res.destroyed) return;
    stream.state = 'queued';
    queue.add(stream);
    if (working) return;
    working = true;
    void work();
  };

  return { add, remove: (stream) => void queue.delete(stream), forget: pages.forget };
}

type PageRead = { readonly after: number; readonly page: ChangePage | undefined };
