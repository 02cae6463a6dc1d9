// The whole set as one JSON array, made once for each state of the routes and shared by all readers. It is serialised
// in slices, so that 100,000 routes do not stall the traffic. It is compressed off the main thread, and only if a
// client asks for it.
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { toWire, type Route } from '../../domain/routing/route.ts';
import type { Routes } from '../routes/registry-routes.ts';

/** Name of a set. */
export type FeedName = {
  readonly revision: number;
  readonly etag: string;
  /** Tag of the zipped body: another coding has a strong tag of its own (RFC 9110 section 8.8.3.3). */
  readonly zippedEtag: string;
};

type FeedBody = FeedName & {
  readonly plain: Buffer;
  /** Zipped body; undefined if compressing is not worth it. */
  readonly zipped: () => Promise<Buffer | undefined>;
};

export type Feed = {
  /** Name of the set as it is now, which is not made for that. */
  readonly name: () => FeedName;
  /** The set as it is now, or as it became while this was made. */
  readonly current: () => Promise<FeedBody>;
};

const SLICE = 250;
const CLOSING = 1;
const ROOM = 1.25;
const MIN_ZIPPED_BYTES = 1024;
const zip = promisify(gzip);

export function createFeed(routes: Pick<Routes, 'head' | 'routeSet'>): Feed {
  let made: FeedBody | undefined;
  let madeFor: string | undefined;
  let making: Promise<FeedBody> | undefined;

  const name = (): FeedName => {
    const { revision, stamp } = routes.head();
    return { revision, etag: `"${revision}.${stamp}"`, zippedEtag: `"${revision}.${stamp}.gzip"` };
  };
  const make = async (): Promise<FeedBody> => {
    const { stamp } = routes.head();
    const named = name();
    const plain = await serialise(routes.routeSet().routes);
    let zipped: Promise<Buffer | undefined> | undefined;
    made = {
      ...named,
      plain,
      zipped: () => (zipped ??= plain.length < MIN_ZIPPED_BYTES ? Promise.resolve(undefined) : zip(plain)),
    };
    madeFor = stamp;
    return made;
  };
  const isCurrent = (): boolean => madeFor === routes.head().stamp;

  return {
    name,
    current: async () => {
      if (made && isCurrent()) return made;
      if (making) {
        // A feed that is being made may have begun before the write that this caller knows of; one that begins now has
        // not.
        await making;
        if (made && isCurrent()) return made;
      }
      making ??= make().finally(() => {
        making = undefined;
      });
      return making;
    },
  };
}

/** Writes the feed into one buffer from the start: joining 35 MB of pieces at the end would be a pause of its own. */
async function serialise(routes: readonly Route[]): Promise<Buffer> {
  let body: Buffer = Buffer.alloc(0);
  let end = 0;
  for (let start = 0; start < routes.length; start += SLICE) {
    if (start > 0) await setImmediate();
    const slice = routes.slice(start, start + SLICE).map((route) => JSON.stringify(toWire(route)));
    const piece = Buffer.from(`${start === 0 ? '[' : ','}${slice.join(',')}`);
    const needed = end + piece.length + CLOSING;
    if (needed > body.length) {
      // The size is guessed by the pieces so far, and generously: memory that is not written to is not taken from the
      // system.
      const part = Math.min(1, (start + SLICE) / routes.length);
      body = withRoom(body.subarray(0, end), (needed / part) * ROOM);
    }
    end += piece.copy(body, end);
  }
  const closing = routes.length === 0 ? '[]' : ']';
  if (end === 0) return Buffer.from(closing);
  return body.subarray(0, end + body.write(closing, end));
}

function withRoom(bytes: Buffer, length: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(Math.ceil(length));
  bytes.copy(larger);
  return larger;
}

/** Whether an Accept-Encoding header takes gzip: named with a quality above zero. */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  const codings = String(header ?? '').split(',');
  return codings.some((coding) => {
    const [name, ...parameters] = coding.split(';').map((part) => part.trim().toLowerCase());
    return name === 'gzip' && !parameters.some((parameter) => /^q=0(\.0{0,3})?$/.test(parameter));
  });
}
