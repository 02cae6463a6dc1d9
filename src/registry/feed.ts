// The whole set as one JSON array, made once for each state of the book and shared by all who poll: serialised in slices
// so that 100,000 routes do not stall the traffic, compressed off the main thread and only if somebody asks.
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { toWire, type Route } from '../domain/route.ts';
import type { RouteBook } from './book.ts';

export type FeedBody = {
  readonly revision: number;
  readonly plain: Buffer;
  readonly etag: string;
  /** Another coding of the body has a strong tag of its own (RFC 9110 section 8.8.3.3). */
  readonly zippedEtag: string;
  /** Undefined where compressing is not worth it. */
  readonly zipped: () => Promise<Buffer | undefined>;
};

export type Feed = {
  /** The set as it is now, or as it became while this was made. */
  readonly current: () => Promise<FeedBody>;
};

const SLICE = 500;
const MIN_ZIPPED_BYTES = 1024;
const zip = promisify(gzip);

export function createFeed(book: Pick<RouteBook, 'head' | 'routeSet'>): Feed {
  let made: FeedBody | undefined;
  let madeFor: string | undefined;
  let making: Promise<FeedBody> | undefined;

  const make = async (): Promise<FeedBody> => {
    const { revision, stamp } = book.head();
    const plain = await serialise(book.routeSet().routes);
    let zipped: Promise<Buffer | undefined> | undefined;
    made = {
      revision,
      plain,
      etag: `"${revision}.${stamp}"`,
      zippedEtag: `"${revision}.${stamp}.gzip"`,
      zipped: () => (zipped ??= plain.length < MIN_ZIPPED_BYTES ? Promise.resolve(undefined) : zip(plain)),
    };
    madeFor = stamp;
    return made;
  };
  const isCurrent = (): boolean => madeFor === book.head().stamp;

  return {
    current: async () => {
      if (made && isCurrent()) return made;
      if (making) {
        // It may have begun before the write that this caller knows of; one that begins now has not.
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

async function serialise(routes: readonly Route[]): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let start = 0; start < routes.length; start += SLICE) {
    if (start > 0) await setImmediate();
    const slice = routes.slice(start, start + SLICE).map((route) => JSON.stringify(toWire(route)));
    parts.push(Buffer.from(`${start === 0 ? '[' : ','}${slice.join(',')}`));
  }
  parts.push(Buffer.from(routes.length === 0 ? '[]' : ']'));
  return Buffer.concat(parts);
}

/** Whether an Accept-Encoding header takes gzip: named with a quality above zero. */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  const codings = String(header ?? '').split(',');
  return codings.some((coding) => {
    const [name, ...parameters] = coding.split(';').map((part) => part.trim().toLowerCase());
    return name === 'gzip' && !parameters.some((parameter) => /^q=0(\.0{0,3})?$/.test(parameter));
  });
}
