// The routes of one snapshot by number, in blocks that versions share. A price changed among 100,000 routes copies one
// block, not the list. A version never changes; a draft copies what it writes to.
import type { Route } from './route.ts';

type Block = readonly (Route | undefined)[];

export type Slots = readonly Block[];

type SlotsDraft = {
  readonly get: (slot: number) => Route | undefined;
  readonly set: (slot: number, route: Route | undefined) => void;
  readonly done: () => Slots;
};

const BITS = 8;
const SIZE = 1 << BITS;
const MASK = SIZE - 1;

export const NO_SLOTS: Slots = [];

export function slotOf(slots: Slots, slot: number): Route | undefined {
  return slots[slot >> BITS]?.[slot & MASK];
}

/** Lists every route of `slots`, in the order of their numbers. */
export function listSlots(slots: Slots): Route[] {
  const routes: Route[] = [];
  for (const block of slots) for (const route of block) if (route !== undefined) routes.push(route);
  return routes;
}

export function draftSlots(base: Slots): SlotsDraft {
  const blocks: Block[] = [...base];
  const own = new Map<number, (Route | undefined)[]>();
  return {
    get: (slot) => slotOf(blocks, slot),
    set: (slot, route) => {
      const number = slot >> BITS;
      let block = own.get(number);
      if (block === undefined) {
        // The list gets no holes, which would make every later look-up slower.
        while (blocks.length <= number) blocks.push(Array<Route | undefined>(SIZE).fill(undefined));
        block = [...(blocks[number] ?? [])];
        own.set(number, block);
        blocks[number] = block;
      }
      block[slot & MASK] = route;
    },
    done: () => blocks,
  };
}
