// Finds the route that applies to a path: one version of a set of routes over the trie that its versions share. A version
// never changes; `draft` makes the next one, route by route, so that a large set can be compiled in slices and a new price
// costs no more than itself. No regular expression is built from a pattern. test/domain/routing/revise.test.ts holds any sequence
// of changes against compiling from scratch, test/domain/routing/snapshot.test.ts that against a linear oracle.
import { parsePattern, type Pattern } from './pattern.ts';
import type { PathFolding } from './profile.ts';
import type { Route } from './route.ts';
import { draftSlots, listSlots, NO_SLOTS, slotOf, type Slots } from './slots.ts';
import { Trie, type TrieMatch } from './trie.ts';

export type { TrieMatch } from './trie.ts';

export type Matcher = {
  /** The route for `method` on `key` (a key of fold.ts). */
  readonly find: (key: string, method: string) => TrieMatch;
  /** Every route whose pattern matches `key`, whatever its method, most specific first. */
  readonly findAll: (key: string) => Route[];
  /** Tells whether some pattern holds a dash or an underscore. */
  readonly hasDashes: () => boolean;
  readonly get: (id: string) => Route | undefined;
  readonly size: number;
  /** Lists the routes in no order that anyone may rely on. */
  readonly list: () => readonly Route[];
  /** The start of the next version; undefined if there is one already, or if so much was removed that a new set is due. */
  readonly draft: () => MatcherDraft | undefined;
};

export type MatcherDraft = {
  /** Adds a route; undefined if it was added, else what is wrong with it, and the draft is spoilt. */
  readonly add: (route: Route, pattern: Pattern) => string | undefined;
  /** Puts `route` in the place of the one with its id, whose pattern and method it has too. */
  readonly replace: (route: Route) => void;
  readonly remove: (id: string) => void;
  readonly done: () => Matcher;
};

/** State that a set and its versions share. */
type Family = {
  readonly trie: Trie;
  /** Slots of the newest version by route id. */
  readonly index: Map<string, number>;
  newest: Slots;
};

/** A set is compiled anew if it has more free slots than taken ones and these. */
const SPARE = 1024;

/** The draft of a first version. */
export function draftMatcher(folding: PathFolding): MatcherDraft {
  return draftOf({ trie: new Trie(folding), index: new Map(), newest: NO_SLOTS }, 0, 0);
}

/** Makes a version. `dashed` counts its routes with a dash or an underscore in a literal. */
function versionOf(family: Family, slots: Slots, size: number, dashed: number): Matcher {
  const { trie, index } = family;
  return {
    find: (key, method) => trie.find(slots, key, method),
    findAll: (key) => trie.findAll(slots, key),
    hasDashes: () => dashed > 0,
    get: (id) => {
      if (slots !== family.newest) return listSlots(slots).find((route) => route.id === id);
      const slot = index.get(id);
      return slot === undefined ? undefined : slotOf(slots, slot);
    },
    size,
    list: () => listSlots(slots),
    draft: () => (slots === family.newest && trie.size <= 2 * size + SPARE ? draftOf(family, size, dashed) : undefined),
  };
}

function draftOf(family: Family, baseSize: number, baseDashed: number): MatcherDraft {
  const { trie, index, newest } = family;
  const slots = draftSlots(newest);
  // Changes are kept apart until the draft is done, so that one that is given up leaves no trace; a first version has
  // none to spoil.
  const changed: Map<string, number | undefined> = newest === NO_SLOTS ? index : new Map();
  const slotById = (id: string): number | undefined => (changed.has(id) ? changed.get(id) : index.get(id));
  let [size, dashed] = [baseSize, baseDashed];
  return {
    add: (route, pattern) => {
      if (changed !== index && slotById(route.id) !== undefined) return 'the id stands twice';
      const slot = trie.slotFor(pattern.segments, route.method);
      const other = slots.get(slot);
      if (other !== undefined) return `route ${other.id} has the same method and pattern`;
      slots.set(slot, route);
      changed.set(route.id, slot);
      size++;
      if (trie.isDashed(pattern)) dashed++;
      // The size tells whether all are new: to ask for a string that is not there costs more than to put it in.
      return changed === index && index.size < size ? 'the id stands twice' : undefined;
    },
    replace: (route) => {
      const slot = slotById(route.id);
      const old = slot === undefined ? undefined : slots.get(slot);
      if (slot === undefined || old?.pattern !== route.pattern || old.method !== route.method)
        throw new Error(`route ${route.id}: there is none that it could replace`);
      slots.set(slot, route);
    },
    remove: (id) => {
      const slot = slotById(id);
      const old = slot === undefined ? undefined : slots.get(slot);
      if (slot === undefined || old === undefined) throw new Error(`route ${id}: it is not there`);
      slots.set(slot, undefined);
      changed.set(id, undefined);
      size--;
      const parsed = parsePattern(old.pattern);
      if (parsed.ok && trie.isDashed(parsed.pattern)) dashed--;
    },
    done: () => {
      if (family.newest !== newest) throw new Error('another version was made meanwhile');
      for (const [id, slot] of changed === index ? [] : changed) {
        if (slot === undefined) index.delete(id);
        else index.set(id, slot);
      }
      family.newest = slots.done();
      return versionOf(family, family.newest, size, dashed);
    },
  };
}
