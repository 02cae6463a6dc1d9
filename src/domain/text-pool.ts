// One string for equal texts: 100,000 routes have few methods, currencies and amounts between them, and SQLite gives a
// string of its own for each. Without it an idle process with 100,000 routes takes 176 MB in place of 158 (`npm run bench
// -- --only memory --routes 100000 --checkout ../without`). Bounded, because what is pooled comes from outside.
import { LRUCache } from 'lru-cache';

const MAX_TEXTS = 1024;

/** Returns `text`, or an equal one that it returned before. For the time of one load. */
export function createTextPool(): (text: string) => string {
  const texts = new LRUCache<string, string>({ max: MAX_TEXTS, memoMethod: (text) => text });
  return (text) => texts.memo(text);
}
