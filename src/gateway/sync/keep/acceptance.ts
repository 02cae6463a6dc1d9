// Decides whether to accept a registry's set in place of the last good one. A registry that lost its data, was restored
// from an old backup or is another one altogether answers as politely as ever. To accept that at once would make
// everything free: such a set is held back until the registry has said the same for a while. Pure: no clock, no I/O.
import type { SetName } from '../follow/route-source.ts';

/** Facts about a set that the decision needs. */
export type SetFacts = SetName & { readonly size: number };

type Suspicion = 'another_registry' | 'older_revision' | 'emptied';

/** A set that waits. Times in milliseconds of a clock that only grows. */
export type HeldSet = {
  readonly suspicion: Suspicion;
  readonly held: SetFacts;
  readonly sinceMs: number;
  /** Milliseconds for which the registry has said so without a poll in between that said otherwise or nothing. */
  readonly agreedMs: number;
  /** Time at which it said so last; undefined if the poll after that came to nothing. */
  readonly lastMs: number | undefined;
};

export type PollAnswer =
  | { readonly kind: 'set'; readonly facts: SetFacts }
  /** The set is the last good one again. */
  | { readonly kind: 'unchanged' }
  /** An answer that is no valid set. */
  | { readonly kind: 'invalid' }
  | { readonly kind: 'nothing' };

export type Decision =
  /** The set is accepted. `waited`: it was held back before. */
  | { readonly kind: 'accept'; readonly waited: boolean }
  | { readonly kind: 'keep' }
  | { readonly kind: 'hold'; readonly holding: HeldSet }
  /** The set is refused, nothing of it is used. A set that is held back waits on, and this poll does not count. */
  | { readonly kind: 'refuse'; readonly holding: HeldSet | undefined };

type Situation = {
  /** Last good set, or undefined before the first. */
  readonly good: SetFacts | undefined;
  readonly holding: HeldSet | undefined;
  readonly emptyAfterMs: number;
};

export function decideSet({ good, holding, emptyAfterMs }: Situation, polled: PollAnswer, nowMs: number): Decision {
  switch (polled.kind) {
    case 'unchanged':
      return { kind: 'keep' };
    case 'invalid':
    case 'nothing':
      return { kind: 'refuse', holding: holding && { ...holding, lastMs: undefined } };
    case 'set': {
      const suspicion = good && suspect(good, polled.facts);
      if (suspicion === undefined) return { kind: 'accept', waited: false };
      const next = agree(holding, suspicion, polled.facts, nowMs);
      return next.agreedMs >= emptyAfterMs ? { kind: 'accept', waited: true } : { kind: 'hold', holding: next };
    }
    default:
      return polled satisfies never;
  }
}

/** Says for logs and readiness what is odd about the set that is held back. */
export function describeHolding({ suspicion, held }: HeldSet, good: SetFacts | undefined): string {
  switch (suspicion) {
    case 'another_registry':
      return `the registry calls itself ${held.registryId ?? 'nothing'}, the routes in force are of ${good?.registryId ?? 'one without a name'}`;
    case 'older_revision':
      return `the registry is at revision ${held.revision}, the routes in force are at ${good?.revision}`;
    case 'emptied':
      return `the registry has no routes any more, ${good?.size} are in force`;
    default:
      return suspicion satisfies never;
  }
}

function suspect(good: SetFacts, next: SetFacts): Suspicion | undefined {
  if (next.registryId !== good.registryId) return 'another_registry';
  const known = next.revision !== undefined && good.revision !== undefined;
  if (known && isBelow(next.revision, good.revision)) return 'older_revision';
  const continues = next.registryId !== undefined && known && isBelow(good.revision, next.revision);
  if (good.size > 0 && next.size === 0 && !continues) return 'emptied';
  return undefined;
}

function isBelow(a: number | undefined, b: number | undefined): boolean {
  return a !== undefined && b !== undefined && a < b;
}

/** Continues a holding if the registry says the same kind of thing, and not something older still; else begins one. */
function agree(holding: HeldSet | undefined, suspicion: Suspicion, facts: SetFacts, nowMs: number): HeldSet {
  const same =
    holding !== undefined &&
    holding.suspicion === suspicion &&
    holding.held.registryId === facts.registryId &&
    !isBelow(facts.revision, holding.held.revision);
  if (!same) return { suspicion, held: facts, sinceMs: nowMs, agreedMs: 0, lastMs: nowMs };
  const gapMs = holding.lastMs === undefined ? 0 : Math.max(0, nowMs - holding.lastMs);
  return { ...holding, held: facts, agreedMs: holding.agreedMs + gapMs, lastMs: nowMs };
}
