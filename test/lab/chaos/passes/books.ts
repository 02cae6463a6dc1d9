// The books of a pass as a registry shows them, looked at again and again while everything goes on.
import { setTimeout } from 'node:timers/promises';
import { creditUnits } from '../../../../src/domain/selling/pass-book.ts';
import type { World } from '../world.ts';
import type { BoughtPass, Books, PassJournal } from './pass-journal.ts';

const PARTS = ['sold', 'drawn', 'left', 'reserved', 'lapsed'] as const satisfies readonly (keyof Books)[];

const LOOK_MS = 100;

/** The books of a pass; undefined: the registry cannot say now. */
export async function readBooks({ ask }: World, { id, kind }: BoughtPass): Promise<Books | undefined> {
  const view = await ask('GET', `/v1/billing/passes/${id}`).catch((error: unknown) => {
    if (error instanceof Error && error.message.includes(': 404 ')) throw error;
    return undefined;
  });
  if (view === undefined) return undefined;
  const texts = view as Readonly<Record<keyof Books, string>>;
  const units = (text: string): bigint => (kind === 'uses' ? BigInt(text) : creditUnits(text));
  const [sold = 0n, drawn = 0n, left = 0n, reserved = 0n, lapsed = 0n] = PARTS.map((part) => units(texts[part]));
  return { sold, drawn, left, reserved, lapsed };
}

/** What is wrong with books, at whatever moment; undefined: nothing. */
export function faultOf(books: Books): string | undefined {
  const { sold, drawn, left, reserved, lapsed } = books;
  const isSum = drawn + left + reserved + lapsed === sold;
  if (isSum && PARTS.every((part) => books[part] >= 0n) && lapsed === 0n) return undefined;
  return `the books do not hold: ${PARTS.map((part) => `${part} ${books[part]}`).join(', ')}`;
}

/** Looks at one pass after the other until it is stopped. */
export function watchBooks(world: World, journal: PassJournal): () => Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  const watching = (async () => {
    for (let turn = 0; !signal.aborted; turn++) {
      const pass = journal.passes[turn % Math.max(1, journal.passes.length)];
      try {
        const books = pass && (await readBooks(world, pass));
        if (books !== undefined) journal.looks++;
        const fault = books && faultOf(books);
        if (fault !== undefined) journal.violations.push(`pass ${pass?.index} (${pass?.role}): ${fault}`);
      } catch (error) {
        journal.violations.push(`pass ${pass?.index} (${pass?.role}) is not in the books: ${String(error)}`);
      }
      await setTimeout(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  })();
  return () => {
    stop.abort();
    return watching;
  };
}
