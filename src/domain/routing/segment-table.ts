// The literal steps of the trie in one hash table: (node, segment) -> node. A Map for each node would copy and hash every
// segment of a path that was never seen before. Here a segment is compared where it stands in the path. Numbers stand in
// typed arrays, so that 100,000 routes are no work for the garbage collector. The table only ever grows. What a client sends
// is never put in, so no client can crowd it.
import { fnv1a } from '../fnv.ts';
import { grown, makeInt32, makeUint16 } from './growing-array.ts';

type SegmentTable = {
  /** The number of the node that `segment` leads to from `node`, or 0. */
  readonly find: (node: number, path: string, start: number, end: number) => number;
  /** Makes `segment` lead from `node` to `child`; it must not lead anywhere yet. */
  readonly put: (node: number, segment: string, child: number) => void;
};

const FIRST_SLOTS = 64;
const GOLDEN = 0x9e3779b1;
/** Numbers of one entry: its hash, the node it leads from, the node it leads to, where its text starts. */
const FIELDS = 4;

/** Nodes are numbered from 0; 0 is the root, which nothing leads to. */
export function createSegmentTable(): SegmentTable {
  // Entries are numbered from 1; a slot holds the number of an entry, or 0.
  let entries = new Int32Array((FIRST_SLOTS / 2) * FIELDS);
  let count = 1;
  // Texts in a row, each its length and then its characters.
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
      // The table is at most half full, so that a look-up ends after a step or two.
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
  const hash = fnv1a(text, Math.imul(node + 1, GOLDEN), start, end);
  return hash ^ (hash >>> 15);
}
