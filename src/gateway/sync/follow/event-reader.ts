// Reads a registry's event stream: bytes become Server-Sent Events as the HTML standard says, and these become changes,
// heads and resets. Nothing is believed before its shape was checked. An event that cannot be read is reported: its
// change would be missed for good.
import { z } from 'zod';
import type { FeedChange } from '../../routes/snapshot-compiler.ts';
import { FEED_LIMITS, readFeedRoute } from './feed-reader.ts';

/** The head that a registry tells: which set it has, and the digest that proves it. */
export type SetHead = {
  readonly kind: 'head';
  readonly revision: number;
  readonly routes: number;
  readonly digest: string;
};

export type RegistryEvent =
  | FeedChange
  | SetHead
  /** The changes that are missing can be told no more. */
  | { readonly kind: 'reset' }
  | { readonly kind: 'unreadable'; readonly reason: string };

/** An event as it was sent, with its own id; `data` is undefined if it was too long to be kept. */
export type ServerSentEvent = {
  readonly name: string;
  readonly id: string | undefined;
  readonly data: string | undefined;
};

/** Length of a line and of an event's data at most. */
const MAX_LENGTH = FEED_LIMITS.routeBytes + 1024;
const REVISION = /^\d{1,15}$/;

const headData = z.object({
  revision: z.int().nonnegative(),
  routes: z.int().nonnegative(),
  digest: z.string().regex(/^[0-9a-f]{64}$/),
});
const deletedData = z.object({ id: z.guid().transform((id) => id.toLowerCase()) });

export async function* readEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<RegistryEvent, void, undefined> {
  const parser = createEventParser();
  for await (const chunk of chunks) {
    for (const event of parser.push(chunk)) {
      const read = readEvent(event);
      if (read !== undefined) yield read;
    }
  }
}

/** Reads an event; undefined if it tells nothing of the set. */
function readEvent({ name, id, data }: ServerSentEvent): RegistryEvent | undefined {
  switch (name) {
    case 'reset':
      return { kind: 'reset' };
    case 'head': {
      const head = headData.safeParse(parse(data));
      return head.success ? { kind: 'head', ...head.data } : unreadable(name);
    }
    case 'route.created':
    case 'route.updated':
    case 'route.deleted': {
      if (id === undefined || !REVISION.test(id)) return unreadable(name);
      const revision = Number(id);
      if (name === 'route.deleted') {
        const deleted = deletedData.safeParse(parse(data));
        return deleted.success ? { kind: 'deleted', revision, id: deleted.data.id } : unreadable(name);
      }
      const read = readFeedRoute(parse(data));
      const kind = name === 'route.created' ? 'created' : 'updated';
      return read.ok ? { kind, revision, route: read.route } : unreadable(name);
    }
    default:
      return undefined;
  }
}

function unreadable(name: string): RegistryEvent {
  return { kind: 'unreadable', reason: `an event ${name} cannot be read` };
}

function parse(data: string | undefined): unknown {
  try {
    return data === undefined ? undefined : JSON.parse(data);
  } catch {
    return undefined;
  }
}

type EventParser = {
  /** The events that end in these bytes. */
  readonly push: (bytes: Uint8Array) => readonly ServerSentEvent[];
};

export function createEventParser(): EventParser {
  const decoder = new TextDecoder();
  let line = '';
  let isCut = false;
  let afterReturn = false;
  let name = '';
  let id: string | undefined;
  /** The data so far; undefined before its first line. */
  let data: string | undefined;
  let isTooLong = false;

  const readField = (text: string, cut: boolean): void => {
    const colon = text.indexOf(':');
    const field = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? '' : text.slice(text[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'data') {
      data = data === undefined ? value : `${data}\n${value}`;
      if (cut || data.length > MAX_LENGTH) [data, isTooLong] = ['', true];
    } else if (field === 'event') name = value;
    else if (field === 'id' && /^[\x20-\x7e]{0,128}$/.test(value)) id = value === '' ? undefined : value;
  };
  /** The event that an empty line ends. */
  const end = (): ServerSentEvent | undefined => {
    const event = data === undefined ? undefined : { name, id, data: isTooLong ? undefined : data };
    [name, id, data, isTooLong] = ['', undefined, undefined, false];
    return event;
  };

  return {
    push: (bytes) => {
      const decoded = decoder.decode(bytes, { stream: true });
      if (decoded === '') return [];
      const text = afterReturn && decoded.startsWith('\n') ? decoded.slice(1) : decoded;
      afterReturn = decoded.endsWith('\r');
      const lines = (line + text).split(/\r\n|\n|\r/);
      const rest = lines.pop() ?? '';
      const events: ServerSentEvent[] = [];
      for (const whole of lines) {
        if (whole === '' && !isCut) {
          const event = end();
          if (event !== undefined) events.push(event);
        } else readField(whole.slice(0, MAX_LENGTH), isCut || whole.length > MAX_LENGTH);
        isCut = false;
      }
      // The beginning of a line that is too long is kept, because it names the field.
      isCut ||= rest.length > MAX_LENGTH;
      line = isCut ? rest.slice(0, KEPT_OF_CUT) : rest;
      return events;
    },
  };
}

const KEPT_OF_CUT = 256;
