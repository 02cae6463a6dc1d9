// The literal steps of the matcher's trie in one hash table: (node, segment) -> node. A Map a node would hash, and first
// copy, every segment of every path that was never seen before; here a segment is compared where it stands in the path.
// Filled while a set is compiled, only read afterwards. What a client sends is never put in, so that nobody can crowd it.

export type SegmentTable = {
  /** The number of the node that `segment` leads to from `node`, or 0. */
  readonly find: (node: number, path: string, start: number, end: number) => number;
  /** Makes `segment` lead from `node` to `child`; it must not lead anywhere yet. */
  readonly put: (node: number, segment: string, child: number) => void;
};

const FIRST_SLOTS = 1024;
const FNV_PRIME = 0x01000193;
const GOLDEN = 0x9e3779b1;

/** Nodes are numbered from 0; 0 is the root, which nothing leads to. */
export function createSegmentTable(): SegmentTable {
  // Entries are numbered from 1; a slot holds the number of an entry, or 0.
  const parents: number[] = [0];
  const segments: string[] = [''];
  const children: number[] = [0];
  const hashes: number[] = [0];
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
        const entry = slots[slot] ?? 0;
        if (entry === 0) return 0;
        if (hashes[entry] !== hash || parents[entry] !== node) continue;
        const segment = segments[entry] ?? '';
        if (segment.length === end - start && path.startsWith(segment, start)) return children[entry] ?? 0;
      }
    },
    put: (node, segment, child) => {
      const hash = hashSegment(node, segment, 0, segment.length);
      const entry = segments.push(segment) - 1;
      parents.push(node);
      children.push(child);
      hashes.push(hash);
      // At most half full, so that a look-up ends after a step or two.
      if (segments.length * 2 > slots.length) {
        slots = new Int32Array(slots.length * 2);
        mask = slots.length - 1;
        for (let other = 1; other < entry; other++) place(other, hashes[other] ?? 0);
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
