// The log of changes as text of events, in pages that all streams share. A change is read and written once, however
// many streams resume from before it, and a page that a slow reader keeps is the same memory for all of them. Pages end
// at the same revisions wherever a stream begins, so that streams meet in them.
import { LRUCache } from 'lru-cache';
import { writeChange } from './event-text.ts';
import type { RouteEvent } from '../routes/route-index.ts';

/** The text of the changes after one revision. */
export type ChangePage = {
  /** The revision of the last change. */
  readonly last: number;
  /** The text up to the change that made `revision`, which is one of the page's. */
  readonly upTo: (revision: number) => Buffer;
};

type ChangePages = {
  /** The page after `revision`, if it is in memory. */
  readonly kept: (revision: number) => ChangePage | undefined;
  /** Reads the page after `revision`; undefined if the log cannot tell it. Rejects if the store cannot. */
  readonly read: (revision: number) => Promise<ChangePage | undefined>;
  /** Forgets all of them: the log is another one. */
  readonly forget: () => void;
};

type PagesOptions = {
  readonly head: () => { readonly revision: number };
  readonly changesAfter: (revision: number, limit: number) => Promise<readonly RouteEvent[] | 'too_old'>;
};

/** Changes of a page: reading them from a store takes a millisecond or two. */
export const PAGE_CHANGES = 64;
const KEPT_BYTES = 16 * 1024 * 1024;

export function createChangePages({ head, changesAfter }: PagesOptions): ChangePages {
  const pages = new LRUCache<number, ChangePage & { readonly bytes: number }>({
    maxSize: KEPT_BYTES,
    sizeCalculation: ({ bytes }) => bytes,
  });
  let generation = 0;
  return {
    kept: (revision) => {
      const page = pages.get(revision);
      // The log may have grown since its last page was read.
      return page === undefined || isWhole(page) || page.last >= head().revision ? page : undefined;
    },
    read: async (revision) => {
      const readFor = generation;
      const changes = await changesAfter(revision, PAGE_CHANGES - (revision % PAGE_CHANGES));
      if (changes === 'too_old') return undefined;
      const page = pageOf(revision, changes);
      if (page !== undefined && readFor === generation) pages.set(revision, page);
      return page;
    },
    forget: () => {
      generation++;
      pages.clear();
    },
  };
}

function isWhole({ last }: ChangePage): boolean {
  return last % PAGE_CHANGES === 0;
}

function pageOf(after: number, changes: readonly RouteEvent[]): (ChangePage & { readonly bytes: number }) | undefined {
  const last = after + changes.length;
  // Changes are numbered without gaps.
  if (changes.length === 0 || changes.some(({ revision }, index) => revision !== after + 1 + index)) return undefined;
  const texts = changes.map((change) => Buffer.from(writeChange(change)));
  const bytes = Buffer.concat(texts);
  let end = 0;
  const ends = texts.map(({ length }) => (end += length));
  return { last, bytes: bytes.length, upTo: (revision) => bytes.subarray(0, ends[revision - after - 1] ?? 0) };
}
