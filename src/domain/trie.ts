// Which patterns lead where: a trie over folded segments whose ends name numbered slots. It only ever grows, and knows
// no route: which of the slots are taken, and by what, is said by the Slots that a walk is given. So every version of a
// set of routes can share one trie, and a new price changes none of it.
// Precedence is total and written as the order of the walk: literal over parameter over wildcard, segment by segment, and
// only routes whose method matches too compete; then exact method over `*`.
import { foldSegment } from './fold.ts';
import type { Segment } from './pattern.ts';
import type { Folding } from './profile.ts';
import type { Route } from './route.ts';
import { createSegmentTable, grown, makeInt32 } from './segment-table.ts';
import { slotOf, type Slots } from './slots.ts';

export type Trie = {
  /** The slot of `method` at the end of `segments`: always the same one, made where there is none. */
  readonly slotFor: (segments: readonly Segment[], method: string) => number;
  /** How many slots there are. */
  readonly size: () => number;
  /** The route that applies to `method` on `key` (a key of fold.ts). */
  readonly find: (slots: Slots, key: string, method: string) => Found;
  /** Every route whose pattern matches `key`, whatever its method, most specific first. */
  readonly findAll: (slots: Slots, key: string) => Route[];
  /** Some literal holds, or held once, a dash or an underscore. */
  readonly hasDashes: () => boolean;
};

/** `other_methods`: some pattern matches, no route of it the method. */
export type Found = Route | 'other_methods' | undefined;

// Fields of a node. Nodes are numbered from 0, the root; 0 also stands for "no node", since nothing leads to the root.
const PARAM = 0;
/** The first slot of those that end here. */
const ENDS = 1;
/** The first slot of those whose wildcard stands here: they cover this path and everything below. */
const WILDCARDS = 2;
/** Some literal leads on from here, through the table. */
const LITERALS = 3;
const NODE_FIELDS = 4;

// Fields of a slot, numbered from 1: its method's number, and the next slot of the same place.
const METHOD = 0;
const NEXT = 1;
const SLOT_FIELDS = 2;

const ANY_METHOD = 0;
const NO_METHOD = -1;

export function createTrie(folding: Folding): Trie {
  const table = createSegmentTable();
  let nodes = new Int32Array(NODE_FIELDS * 16);
  let nodeCount = 1;
  let chain = new Int32Array(SLOT_FIELDS * 16);
  let slotCount = 1;
  let dashes = false;
  const methods = new Map<string, number>([['*', ANY_METHOD]]);

  const field = (node: number, name: number): number => nodes[node * NODE_FIELDS + name] ?? 0;
  const addNode = (): number => {
    const node = nodeCount++;
    if (nodeCount * NODE_FIELDS > nodes.length) nodes = grown(nodes, nodeCount * NODE_FIELDS, makeInt32);
    return node;
  };
  const literalFrom = (node: number, literal: string): number => {
    const known = table.find(node, literal, 0, literal.length);
    if (known !== 0) return known;
    dashes ||= literal.includes('-') || literal.includes('_');
    const child = addNode();
    table.put(node, literal, child);
    nodes[node * NODE_FIELDS + LITERALS] = 1;
    return child;
  };
  const paramFrom = (node: number): number => {
    const known = field(node, PARAM);
    if (known !== 0) return known;
    const child = addNode();
    nodes[node * NODE_FIELDS + PARAM] = child;
    return child;
  };

  /** Where in `nodes` the first slot of a pattern is named; nodes are made on the way. */
  const placeOf = (segments: readonly Segment[]): number => {
    let node = 0;
    for (const segment of segments) {
      switch (segment.kind) {
        case 'literal':
          node = literalFrom(node, foldSegment(segment.text, folding));
          break;
        case 'param':
          node = paramFrom(node);
          break;
        case 'wildcard':
          return node * NODE_FIELDS + WILDCARDS;
        default:
          segment satisfies never;
      }
    }
    return node * NODE_FIELDS + ENDS;
  };

  /** Exact method first; HEAD is answered by what answers GET; then `*`. `get`: the number of GET where it counts too. */
  const pick = (slots: Slots, first: number, method: number, get: number): Found => {
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
  };

  /** `at` is where the next segment of `key` starts; the length of `key` or more: none is left. */
  const walk = (slots: Slots, node: number, key: string, at: number, method: number, get: number): Found => {
    const fields = node * NODE_FIELDS;
    const wildcards = nodes[fields + WILDCARDS] ?? 0;
    let found: Found;
    if (at >= key.length) {
      found = pick(slots, nodes[fields + ENDS] ?? 0, method, get);
    } else {
      const param = nodes[fields + PARAM] ?? 0;
      const literals = nodes[fields + LITERALS] === 1;
      if (literals || param !== 0) {
        const slash = key.indexOf('/', at);
        const end = slash < 0 ? key.length : slash;
        const child = literals ? table.find(node, key, at, end) : 0;
        if (child !== 0) found = walk(slots, child, key, end + 1, method, get);
        if (param !== 0 && typeof found !== 'object')
          found = better(found, walk(slots, param, key, end + 1, method, get));
      }
    }
    return wildcards === 0 || typeof found === 'object' ? found : better(found, pick(slots, wildcards, method, get));
  };

  const list = (slots: Slots, first: number, into: Route[]): void => {
    for (let slot = first; slot !== 0; slot = chain[slot * SLOT_FIELDS + NEXT] ?? 0) {
      const route = slotOf(slots, slot);
      if (route !== undefined) into.push(route);
    }
  };
  const collect = (slots: Slots, node: number, key: string, at: number, into: Route[]): void => {
    if (at >= key.length) {
      list(slots, field(node, ENDS), into);
    } else {
      const slash = key.indexOf('/', at);
      const end = slash < 0 ? key.length : slash;
      const child = table.find(node, key, at, end);
      if (child !== 0) collect(slots, child, key, end + 1, into);
      const param = field(node, PARAM);
      if (param !== 0) collect(slots, param, key, end + 1, into);
    }
    list(slots, field(node, WILDCARDS), into);
  };

  return {
    slotFor: (segments, method) => {
      const place = placeOf(segments);
      let number = methods.get(method);
      if (number === undefined) methods.set(method, (number = methods.size));
      let last = 0;
      for (let slot = nodes[place] ?? 0; slot !== 0; slot = chain[slot * SLOT_FIELDS + NEXT] ?? 0) {
        if (chain[slot * SLOT_FIELDS + METHOD] === number) return slot;
        last = slot;
      }
      const slot = slotCount++;
      if (slotCount * SLOT_FIELDS > chain.length) chain = grown(chain, slotCount * SLOT_FIELDS, makeInt32);
      chain[slot * SLOT_FIELDS + METHOD] = number;
      if (last === 0) nodes[place] = slot;
      else chain[last * SLOT_FIELDS + NEXT] = slot;
      return slot;
    },
    size: () => slotCount,
    hasDashes: () => dashes,
    find: (slots, key, method) =>
      walk(
        slots,
        0,
        key,
        firstSegment(key),
        methods.get(method) ?? NO_METHOD,
        method === 'HEAD' ? (methods.get('GET') ?? NO_METHOD) : NO_METHOD,
      ),
    findAll: (slots, key) => {
      const found: Route[] = [];
      collect(slots, 0, key, firstSegment(key), found);
      return found;
    },
  };
}

function firstSegment(key: string): number {
  return key.length > 1 ? 1 : key.length;
}

/** A route before none, the more specific one first; that other methods match is remembered. */
function better(specific: Found, general: Found): Found {
  return typeof specific === 'object' || general === undefined ? specific : general;
}
