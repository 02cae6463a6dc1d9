// The literal steps of the matcher's trie in one hash table: (node, segment) -> node. A Map a node would hash, and first
// copy, every segment of every path that was never seen before; here a segment is compared where it stands in the path.
// Numbers in typed arrays throughout, so that 100,000 routes are no work for the garbage collector. Only ever added to;
// what a client sends is never put in, so no client can crowd it.

export type SegmentTable = {
  /** The number of the node that `segment` leads to from `node`, or 0. */
  readonly find: (node: number, path: string, start: number, end: number) => number;
  /** Makes `segment` lead from `node` to `child`; it must not lead anywhere yet. */
  readonly put: (node: number, segment: string, child: number) => void;
};

const FIRST_SLOTS = 64;
const FNV_PRIME = 0x01000193;
const GOLDEN = 0x9e3779b1;
/** Numbers of one entry: its hash, the node it leads from, the node it leads to, where its text starts. */
const FIELDS = 4;

/** Nodes are numbered from 0; 0 is the root, which nothing leads to. */
export function createSegmentTable(): SegmentTable {
  // Entries are numbered from 1; a slot holds the number of an entry, or 0.
  let entries = new Int32Array((FIRST_SLOTS / 2) * FIELDS);
  let count = 1;
  // Each text is its length and then its characters.
  let texts = new Uint16Array(FIRST_SLOTS);
  let textsEnd = 0;
  let slots = new Int32Array(FIRST_SLOTS);
  let mask = slots.length - 1;

  const place = (entry: number, hash: number): void => {
    let slot = hash & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = entry;
  };

  return {
    find: (node, path, start, end) => {
      const hash = hashSegment(node, path, start, end);
      for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
        const at = (slots[slot] ?? 0) * FIELDS;
        if (at === 0) return 0;
        if (entries[at] !== hash || entries[at + 1] !== node) continue;
        let text = entries[at + 3] ?? 0;
        if (texts[text++] !== end - start) continue;
        let i = start;
        while (i < end && texts[text] === path.charCodeAt(i)) {
          text++;
          i++;
        }
        if (i === end) return entries[at + 2] ?? 0;
      }
    },
    put: (node, segment, child) => {
      const hash = hashSegment(node, segment, 0, segment.length);
      const entry = count++;
      if (count * FIELDS > entries.length) entries = grown(entries, count * FIELDS, makeInt32);
      const at = entry * FIELDS;
      entries[at] = hash;
      entries[at + 1] = node;
      entries[at + 2] = child;
      entries[at + 3] = textsEnd;
      const end = textsEnd + 1 + segment.length;
      if (end > texts.length) texts = grown(texts, end, makeUint16);
      texts[textsEnd++] = segment.length;
      for (let i = 0; i < segment.length; i++) texts[textsEnd++] = segment.charCodeAt(i);
      // At most half full, so that a look-up ends after a step or two.
      if (count * 2 > slots.length) {
        slots = new Int32Array(slots.length * 2);
        mask = slots.length - 1;
        for (let other = 1; other < entry; other++) place(other, entries[other * FIELDS] ?? 0);
      }
      place(entry, hash);
    },
  };
}

function hashSegment(node: number, text: string, start: number, end: number): number {
  let hash = Math.imul(node + 1, GOLDEN);
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ text.charCodeAt(i), FNV_PRIME);
  return hash ^ (hash >>> 15);
}

/** A copy with room for at least `length` numbers. */
export function grown<T extends Int32Array | Uint16Array>(array: T, length: number, make: (size: number) => T): T {
  const copy = make(Math.max(length, array.length * 2));
  copy.set(array);
  return copy;
}

export const makeInt32 = (size: number): Int32Array<ArrayBuffer> => new Int32Array(size);
const makeUint16 = (size: number): Uint16Array<ArrayBuffer> => new Uint16Array(size);
