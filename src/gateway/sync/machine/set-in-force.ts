// The set in force, and what becomes of it as the registry answers: replaced, changed, confirmed, or kept while another
// set is held back or refused. Nothing here takes routes away. acceptance.ts judges a set.
import type { Route } from '../../../domain/routing/route.ts';
import type { CompileResult } from '../../routes/snapshot-compiler.ts';
import type { FetchResult, FoundSet } from '../follow/route-source.ts';
import { decideSet, describeHolding, type PollAnswer, type SetFacts } from '../keep/acceptance.ts';
import type { StoredSet } from '../keep/snapshot-file.ts';
import type { CompiledChange, PollResult, SetInForce } from './state.ts';
import { tell, type StepDraft } from './step-draft.ts';

/** An answer that speaks of the set in force or of another. */
type JudgedResult = Exclude<FetchResult, { readonly kind: 'named' }>;

/** Judges what an answer came to; undefined: its set is being compiled. */
export function judge(draft: StepDraft, found: JudgedResult): PollResult | undefined {
  const result = decide(draft, found);
  if (result !== undefined) draft.set.away = result === 'unavailable';
  return result;
}

/** Takes a set that was compiled for a poll. */
export function takeCompiled(draft: StepDraft, set: FoundSet, waited: boolean, taken: CompileResult): PollResult {
  draft.set.away = false;
  if (taken.ok) return take(draft, set, waited);
  // The failure counts as a poll that came to nothing for a set that is held back.
  draft.set.holding &&= { ...draft.set.holding, lastMs: undefined };
  fail(draft, 'error', 'route set refused, the last good one stays', taken.reason);
  return 'invalid';
}

/** Takes the set of the snapshot file. */
export function takeStored(draft: StepDraft, { set, savedAt }: StoredSet, taken: CompileResult): void {
  if (!taken.ok) {
    tell(draft, 'error', 'the snapshot file was refused', { reason: taken.reason });
    return;
  }
  const size = set.routes.length;
  draft.set.good = { set, size, source: 'disk', confirmedAt: savedAt };
  tell(draft, 'info', 'routes loaded from the snapshot file', { revision: set.revision, routes: size });
}

/** Takes the next change, which was compiled; false if it was refused. */
export function takeChange(draft: StepDraft, revision: number, taken: CompiledChange): boolean {
  const { good } = draft.set;
  if (!taken.ok || good === undefined) {
    const reason = taken.ok ? 'there is no set that could change' : taken.reason;
    fail(draft, 'error', 'a change of a route was refused, the last good set stays', reason);
    return false;
  }
  tellSynced(draft, revision, taken.size);
  confirm(draft, changedSet(good.set, revision, taken.list), taken.size);
  return true;
}

/** The registry has the set in force. */
export function confirmSame(draft: StepDraft): void {
  judge(draft, { kind: 'unchanged' });
  draft.effects.push({ kind: 'count', result: 'unchanged' });
}

function decide(draft: StepDraft, found: JudgedResult): PollResult | undefined {
  const { set: current, options, moment } = draft;
  const { holding } = current;
  const { emptyAfterMs } = options;
  const good = factsInForce(current.good);
  const decision = decideSet({ good, holding, emptyAfterMs }, polledOf(found), moment.monotonicMs);
  switch (decision.kind) {
    case 'accept': {
      if (found.kind !== 'set') return 'unavailable';
      const { set } = found;
      if (set.routes === current.good?.set.routes) return take(draft, set, decision.waited);
      draft.effects.push({ kind: 'compile_set', set, waited: decision.waited });
      return undefined;
    }
    case 'keep':
      if (current.lastError !== undefined) tell(draft, 'info', 'the registry answers again');
      if (holding !== undefined)
        tell(draft, 'info', 'the set that was held back is gone: the registry has the routes in force');
      if (current.good === undefined) current.lastError = undefined;
      else confirm(draft, current.good.set, current.good.size);
      return 'unchanged';
    case 'hold': {
      const reason = describeHolding(decision.holding, good);
      if (holding?.sinceMs !== decision.holding.sinceMs)
        tell(draft, 'error', 'route set held back, the last good one stays', { reason, taken_after_ms: emptyAfterMs });
      current.holding = decision.holding;
      current.lastError = undefined;
      return 'held';
    }
    case 'refuse':
      current.holding = decision.holding;
      return refuse(draft, found);
    default:
      return decision satisfies never;
  }
}

function refuse(draft: StepDraft, found: JudgedResult): PollResult {
  const routes = draft.set.good === undefined ? 'no routes are known yet' : 'the last good routes stay';
  switch (found.kind) {
    case 'invalid':
      fail(draft, 'error', 'route set refused, the last good one stays', found.reason);
      return 'invalid';
    case 'unauthorized':
      fail(draft, 'error', `the registry does not let us in, ${routes}`, found.reason);
      return 'unauthorized';
    case 'unavailable':
      fail(draft, 'warn', `the registry is away, ${routes}`, found.reason);
      return 'unavailable';
    case 'set':
    case 'unchanged':
      throw new Error(`a set that was found was refused: ${found.kind}`);
    default:
      return found satisfies never;
  }
}

function take(draft: StepDraft, set: FoundSet, waited: boolean): PollResult {
  if (waited) tell(draft, 'warn', 'the set that was held back is taken: the registry kept saying so');
  tellSynced(draft, set.revision, set.routes.length);
  confirm(draft, set, set.routes.length);
  return 'updated';
}

function confirm({ set: current, moment, effects }: StepDraft, set: FoundSet, size: number): void {
  const confirmedAt = moment.epochMs;
  current.good = { set, size, source: 'registry', confirmedAt };
  current.lastError = undefined;
  current.holding = undefined;
  effects.push({ kind: 'keep', set, confirmedAt });
}

function tellSynced(draft: StepDraft, revision: number | undefined, routes: number): void {
  const { lastError, good } = draft.set;
  if (lastError !== undefined || good === undefined || good.source === 'disk')
    tell(draft, 'info', 'routes synced', { revision, routes });
}

/** Notes why the last poll came to nothing, which is logged once, not at every poll. */
function fail(draft: StepDraft, level: 'warn' | 'error', msg: string, reason: string): void {
  const { set } = draft;
  tell(draft, reason === set.lastError ? 'debug' : level, msg, { reason, routes: set.good?.size });
  set.lastError = reason;
}

/** Makes `set` with its next change; its routes are listed when they are asked for. */
function changedSet({ registryId }: FoundSet, revision: number, list: () => readonly Route[]): FoundSet {
  let routes: readonly Route[] | undefined;
  return {
    ...{ registryId, revision, etag: undefined, digest: '' },
    get routes() {
      return (routes ??= list());
    },
  };
}

export function factsInForce(good: SetInForce | undefined): SetFacts | undefined {
  return good && { registryId: good.set.registryId, revision: good.set.revision, size: good.size };
}

function polledOf(found: JudgedResult): PollAnswer {
  switch (found.kind) {
    case 'set': {
      const { registryId, revision, routes } = found.set;
      return { kind: 'set', facts: { registryId, revision, size: routes.length } };
    }
    case 'unchanged':
    case 'invalid':
      return { kind: found.kind };
    case 'unauthorized':
    case 'unavailable':
      return { kind: 'nothing' };
    default:
      return found satisfies never;
  }
}
