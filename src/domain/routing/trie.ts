// A trie of patterns over folded segments whose ends name numbered slots. It only ever grows, and knows no route: which slots
// are taken, and by what, say the Slots that a walk is given. So every version of a set of routes can share one trie, and a
// new price changes none of it. Precedence is total, and is the order of the walk: literal over parameter over wildcard,
// segment by segment. Only routes whose method matches too compete; then an exact method comes before `*`.
import { foldSegment } from './fold.ts';
import type { Pattern, Segment } from './pattern.ts';
import type { PathFolding } from './profile.ts';
import type { Route } from './route.ts';
import { slotOf, type Slots } from './slots.ts';
import { createSegmentTable } from './segment-table.ts';
import { grown, makeInt32 } from './growing-array.ts';

/** Result of a look-up. `other_methods`: some pattern matches, no route of it the method. */
export type TrieMatch = Route | 'other_methods' | undefined;

// Fields of a node. Nodes are numbered from 0, the root; 0 also stands for "no node", since nothing leads to the root.
const PARAM = 0;
/** Field with the first slot of the routes that end here. */
const ENDS = 1;
/** Field with the first slot of the routes whose wildcard stands here: they cover this path and everything below. */
const WILDCARDS = 2;
/** Field that says that some literal leads on from here, through the table. */
const LITERALS = 3;
const NODE_FIELDS = 4;

// Fields of a slot, numbered from 1: its method's number, and the next slot of the same place.
const METHOD = 0;
const NEXT = 1;
const SLOT_FIELDS = 2;

/** A pattern without any of this has no dash, folded or not. */
const MAYBE_DASHED = /[-_%]|[^\x00-\x7f]/;

const ANY_METHOD = 0;
const NO_METHOD = -1;

/** Grows, and is never changed otherwise. */
export class Trie {
  private readonly folding: PathFolding;
  private readonly table = createSegmentTable();
  private nodes = new Int32Array(NODE_FIELDS * 16);
  private nodeCount = 1;
  private chain = new Int32Array(SLOT_FIELDS * 16);
  private slotCount = 1;
  private readonly methods = new Map<string, number>([['*', ANY_METHOD]]);

  constructor(folding: PathFolding) {
    this.folding = folding;
  }

  /** Number of slots. */
  get size(): number {
    return this.slotCount;
  }

  /** Tells whether some literal of the pattern holds a dash or an underscore. */
  isDashed({ text, segments }: Pattern): boolean {
    if (!MAYBE_DASHED.test(text)) return false;
    return segments.some((segment) => segment.kind === 'literal' && this.holdsDash(segment.text));
  }

  /** The slot of `method` at the end of `segments`: always the same one, made if there is none. */
  slotFor(segments: readonly Segment[], method: string): number {
    const place = this.placeOf(segments);
    let number = this.methods.get(method);
    if (number === undefined) this.methods.set(method, (number = this.methods.size));
    let last = 0;
    for (let slot = this.nodes[place] ?? 0; slot !== 0; slot = this.chain[slot * SLOT_FIELDS + NEXT] ?? 0) {
      if (this.chain[slot * SLOT_FIELDS + METHOD] === number) return slot;
      last = slot;
    }
    const slot = this.addSlot(number);
    if (last === 0) this.nodes[place] = slot;
    else this.chain[last * SLOT_FIELDS + NEXT] = slot;
    return slot;
  }

  /** The route that applies to `method` on `key` (a key of fold.ts). */
  find(slots: Slots, key: string, method: string): TrieMatch {
    const number = this.methods.get(method) ?? NO_METHOD;
    const get = method === 'HEAD' ? (this.methods.get('GET') ?? NO_METHOD) : NO_METHOD;
    return this.walk(slots, 0, key, firstSegment(key), number, get);
  }

  /** Every route whose pattern matches `key`, whatever its method, most specific first. */
  findAll(slots: Slots, key: string): Route[] {
    const found: Route[] = [];
    this.collect(slots, 0, key, firstSegment(key), found);
    return found;
  }

  /** Place in `nodes` where the first slot of a pattern is named; nodes are made on the way. */
  private placeOf(segments: readonly Segment[]): number {
    let node = 0;
    for (const segment of segments) {
      switch (segment.kind) {
        case 'literal':
          node = this.literalFrom(node, foldSegment(segment.text, this.folding));
          break;
        case 'param':
          node = this.paramFrom(node);
          break;
        case 'wildcard':
          return node * NODE_FIELDS + WILDCARDS;
        default:
          segment satisfies never;
      }
    }
    return node * NODE_FIELDS + ENDS;
  }

  private holdsDash(literal: string): boolean {
    const text = foldSegment(literal, this.folding);
    return text.includes('-') || text.includes('_');
  }

  private literalFrom(node: number, literal: string): number {
    const known = this.table.find(node, literal, 0, literal.length);
    if (known !== 0) return known;
    const child = this.addNode();
    this.table.put(node, literal, child);
    this.nodes[node * NODE_FIELDS + LITERALS] = 1;
    return child;
  }

  private paramFrom(node: number): number {
    const known = this.nodes[node * NODE_FIELDS + PARAM] ?? 0;
    if (known !== 0) return known;
    const child = this.addNode();
    this.nodes[node * NODE_FIELDS + PARAM] = child;
    return child;
  }

  private addNode(): number {
    const node = this.nodeCount++;
    const length = this.nodeCount * NODE_FIELDS;
    if (length > this.nodes.length) this.nodes = grown(this.nodes, length, makeInt32);
    return node;
  }

  private addSlot(method: number): number {
    const slot = this.slotCount++;
    const length = this.slotCount * SLOT_FIELDS;
    if (length > this.chain.length) this.chain = grown(this.chain, length, makeInt32);
    this.chain[slot * SLOT_FIELDS + METHOD] = method;
    return slot;
  }

  /** `at` is where the next segment of `key` starts; the length of `key` or more: none is left. */
  private walk(slots: Slots, node: number, key: string, at: number, method: number, get: number): TrieMatch {
    const { nodes } = this;
    const fields = node * NODE_FIELDS;
    const wildcards = nodes[fields + WILDCARDS] ?? 0;
    let found: TrieMatch;
    if (at >= key.length) {
      found = this.pick(slots, nodes[fields + ENDS] ?? 0, method, get);
    } else {
      const param = nodes[fields + PARAM] ?? 0;
      const literals = nodes[fields + LITERALS] === 1;
      if (literals || param !== 0) {
        const slash = key.indexOf('/', at);
        const end = slash < 0 ? key.length : slash;
        const child = literals ? this.table.find(node, key, at, end) : 0;
        if (child !== 0) found = this.walk(slots, child, key, end + 1, method, get);
        if (param !== 0 && typeof found !== 'object')
          found = better(found, this.walk(slots, param, key, end + 1, method, get));
      }
    }
    return wildcards === 0 || typeof found === 'object'
      ? found
      : better(found, this.pick(slots, wildcards, method, get));
  }

  /** Exact method first; HEAD is answered by what answers GET; then `*`. `get`: the number of GET if it counts too. */
  private pick(slots: Slots, first: number, method: number, get: number): TrieMatch {
    const { chain } = this;
    let found: Route | undefined;
    let any: Route | undefined;
    let others = false;
    for (let slot = first; slot !== 0; slot = chain[slot * SLOT_FIELDS + NEXT] ?? 0) {
      const route = slotOf(slots, slot);
      if (route === undefined) continue;
      const its = chain[slot * SLOT_FIELDS + METHOD];
      if (its === method) return route;
      if (its === ANY_METHOD) any = route;
      else if (its === get) found = route;
      else others = true;
    }
    return found ?? any ?? (others ? 'other_methods' : undefined);
  }

  private collect(slots: Slots, node: number, key: string, at: number, into: Route[]): void {
    const fields = node * NODE_FIELDS;
    if (at >= key.length) {
      this.list(slots, this.nodes[fields + ENDS] ?? 0, into);
    } else {
      const slash = key.indexOf('/', at);
      const end = slash < 0 ? key.length : slash;
      const child = this.table.find(node, key, at, end);
      if (child !== 0) this.collect(slots, child, key, end + 1, into);
      const param = this.nodes[fields + PARAM] ?? 0;
      if (param !== 0) this.collect(slots, param, key, end + 1, into);
    }
    this.list(slots, this.nodes[fields + WILDCARDS] ?? 0, into);
  }

  private list(slots: Slots, first: number, into: Route[]): void {
    for (let slot = first; slot !== 0; slot = this.chain[slot * SLOT_FIELDS + NEXT] ?? 0) {
      const route = slotOf(slots, slot);
      if (route !== undefined) into.push(route);
    }
  }
}

function firstSegment(key: string): number {
  return key.length > 1 ? 1 : key.length;
}

/** A route before none, the more specific one first; that other methods match is remembered. */
function better(specific: TrieMatch, general: TrieMatch): TrieMatch {
  return typeof specific === 'object' || general === undefined ? specific : general;
}
