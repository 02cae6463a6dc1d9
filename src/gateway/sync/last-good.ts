// The last good set of routes, and what becomes of it as the registry answers: replaced, changed, proven, or kept while
// another set is held back or refused. Changes are applied in the order of their revisions and no other. Nothing here takes
// routes away. Judging a set is accept.ts' and compiling it compile.ts'.
import { setImmediate as breathe } from 'node:timers/promises';
import { addAll, createSetDigest, type SetDigest } from '../../domain/routing/set-digest.ts';
import type { Clock } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { Compiler, FedChange } from '../routes/snapshot-compiler.ts';
import type { SetHead } from './follow/event-reader.ts';
import type { SnapshotFile } from './keep/snapshot-file.ts';
import { decideSet, describeHolding, type Holding, type Polled, type SetFacts } from './keep/acceptance.ts';
import type { Route } from '../../domain/routing/route.ts';
import type { FetchResult, FoundSet } from './follow/route-source.ts';
import { statusOf, type SyncStatus } from './status.ts';

/** The last good set, for what answers in the registry's place. */
export type LastGood = { readonly set: FoundSet; readonly confirmedAt: number };

/** An answer that speaks of the set in force or of another. */
type JudgedResult = Exclude<FetchResult, { readonly kind: 'named' }>;

/** What an answer of the registry came to. */
export type PollResult = 'updated' | 'unchanged' | 'held' | 'invalid' | 'unauthorized' | 'unavailable';

/** `known`: it is in force already. `gap`: one before it is missing. */
type ChangeResult = 'applied' | 'known' | 'gap' | 'refused';

/** Whether a registry's head is that of the set in force. `gap`: the registry has more changes; `lower`: it has fewer. */
type ProofResult = 'same' | 'gap' | 'lower' | 'differs';

type LastGoodDeps = {
  readonly snapshotFile: SnapshotFile;
  readonly compiler: Compiler;
  readonly clock: Clock;
  readonly log: Log;
  /** How long a registry must go on saying what a set is held back for. */
  readonly emptyAfterMs: number;
};

export class LastGoodSet {
  private readonly deps: LastGoodDeps;
  private source: 'registry' | 'disk' = 'disk';
  private set: FoundSet | undefined;
  private size = 0;
  /** Of the set in force; reckoned when it is first asked for, then kept with every change. */
  private digest: SetDigest | undefined;
  private confirmedAt: number | undefined;
  private holding: Holding | undefined;
  private lastError: string | undefined;
  private away = false;

  constructor(deps: LastGoodDeps) {
    this.deps = deps;
  }

  /** The set that polls ask about. */
  get known(): FoundSet | undefined {
    return this.set;
  }

  /** The registry did not answer the last poll. */
  get isAway(): boolean {
    return this.away;
  }

  get lastGood(): LastGood | undefined {
    const { set, confirmedAt } = this;
    return set === undefined || confirmedAt === undefined ? undefined : { set, confirmedAt };
  }

  status(): SyncStatus {
    const { source, holding, confirmedAt, lastError, away } = this;
    return statusOf({ source, good: this.facts(), holding, confirmedAt, lastError, away }, this.deps.clock.now());
  }

  /** Takes the set of the snapshot file, if there is a good one. */
  async load(): Promise<void> {
    const { snapshotFile, log } = this.deps;
    const stored = await snapshotFile.read();
    if (stored === undefined) return;
    const { set, savedAt } = stored;
    const taken = await this.compile(set);
    if (taken.ok) {
      this.put(set, set.routes.length);
      this.confirmedAt = savedAt;
      log.info('routes loaded from the snapshot file', { revision: set.revision, routes: set.routes.length });
    } else log.error('the snapshot file was refused', { reason: taken.reason });
  }

  async judge(found: JudgedResult): Promise<PollResult> {
    const result = await this.decide(found);
    this.away = result === 'unavailable';
    return result;
  }

  /** The registry answered, though nothing about the set in force. */
  answered(): void {
    this.away = false;
  }

  /** The next change, as the registry tells it. */
  async change(event: FedChange): Promise<ChangeResult> {
    const { set } = this;
    if (set?.revision === undefined || event.revision > set.revision + 1) return 'gap';
    if (event.revision <= set.revision) return 'known';
    const taken = await this.deps.compiler.takeChange(event);
    if (!taken.ok) {
      this.fail('error', 'a change of a route was refused, the last good set stays', taken.reason);
      return 'refused';
    }
    const { was, is } = taken;
    const { matcher } = taken.snapshot;
    if (was !== undefined) this.digest?.remove(was);
    if (is !== undefined) this.digest?.add(is);
    this.tellSynced(event.revision, matcher.size);
    this.size = matcher.size;
    this.confirm(changedSet(set, event.revision, matcher.list));
    return 'applied';
  }

  /** Whether the set in force is the one that the registry speaks of. */
  async prove({ revision, routes, digest }: SetHead): Promise<ProofResult> {
    const { set } = this;
    if (set?.revision === undefined || revision > set.revision) return 'gap';
    if (revision < set.revision) return 'lower';
    return routes === this.size && digest === (await this.ownDigest(set)) ? 'same' : 'differs';
  }

  private async ownDigest({ routes }: FoundSet): Promise<string> {
    if (this.digest === undefined) {
      const digest = createSetDigest();
      await addAll(digest, routes, breathe);
      this.digest = digest;
    }
    return this.digest.hex();
  }

  private async decide(found: JudgedResult): Promise<PollResult> {
    const { clock, log, emptyAfterMs } = this.deps;
    const good = this.facts();
    const { holding } = this;
    const decision = decideSet({ good, holding, emptyAfterMs }, polledOf(found), clock.monotonic());
    switch (decision.kind) {
      case 'accept':
        return found.kind === 'set' ? this.take(found.set, decision.waited) : 'unavailable';
      case 'keep':
        if (this.lastError !== undefined) log.info('the registry answers again');
        if (holding !== undefined) log.info('the set that was held back is gone: the registry has the routes in force');
        if (this.set === undefined) this.lastError = undefined;
        else this.confirm(this.set);
        return 'unchanged';
      case 'hold': {
        const reason = describeHolding(decision.holding, good);
        if (holding?.sinceMs !== decision.holding.sinceMs)
          log.error('route set held back, the last good one stays', { reason, taken_after_ms: emptyAfterMs });
        this.holding = decision.holding;
        this.lastError = undefined;
        return 'held';
      }
      case 'refuse':
        this.holding = decision.holding;
        return this.refuse(found);
      default:
        return decision satisfies never;
    }
  }

  private async take(set: FoundSet, waited: boolean): Promise<PollResult> {
    const { log } = this.deps;
    if (set.routes !== this.set?.routes) {
      const taken = await this.compile(set);
      if (!taken.ok) {
        // It counts as a poll that came to nothing for a set that is held back.
        this.holding &&= { ...this.holding, lastMs: undefined };
        this.fail('error', 'route set refused, the last good one stays', taken.reason);
        return 'invalid';
      }
    }
    if (waited) log.warn('the set that was held back is taken: the registry kept saying so');
    this.tellSynced(set.revision, set.routes.length);
    this.put(set, set.routes.length);
    this.confirm(set);
    return 'updated';
  }

  private tellSynced(revision: number | undefined, routes: number): void {
    if (this.lastError !== undefined || this.set === undefined || this.source === 'disk')
      this.deps.log.info('routes synced', { revision, routes });
  }

  /** A set that is in force as a whole. */
  private put(set: FoundSet, size: number): void {
    if (set.routes !== this.set?.routes) this.digest = undefined;
    this.set = set;
    this.size = size;
  }

  private confirm(set: FoundSet): void {
    this.source = 'registry';
    this.set = set;
    this.lastError = undefined;
    this.holding = undefined;
    this.confirmedAt = this.deps.clock.now();
    this.deps.snapshotFile.keep(set, this.confirmedAt);
  }

  private refuse(found: JudgedResult): PollResult {
    switch (found.kind) {
      case 'invalid':
        this.fail('error', 'route set refused, the last good one stays', found.reason);
        return 'invalid';
      case 'unauthorized':
        this.fail('error', 'the registry does not let us in, the last good routes stay', found.reason);
        return 'unauthorized';
      case 'unavailable':
        this.fail('warn', 'the registry is away, the last good routes stay', found.reason);
        return 'unavailable';
      case 'set':
      case 'unchanged':
        throw new Error(`a set that was found was refused: ${found.kind}`);
      default:
        return found satisfies never;
    }
  }

  /** Why the last poll came to nothing: told once, not at every poll. */
  private fail(level: 'warn' | 'error', msg: string, reason: string): void {
    this.deps.log[reason === this.lastError ? 'debug' : level](msg, { reason, routes: this.set && this.size });
    this.lastError = reason;
  }

  private compile({ registryId = '', revision = 0, routes }: FoundSet): ReturnType<Compiler['take']> {
    return this.deps.compiler.take({ registryId, revision, routes });
  }

  private facts(): SetFacts | undefined {
    return this.set && { registryId: this.set.registryId, revision: this.set.revision, size: this.size };
  }
}

/** `set` with its next change; its routes are listed when they are asked for. */
function changedSet({ registryId }: FoundSet, revision: number, list: () => readonly Route[]): FoundSet {
  let routes: readonly Route[] | undefined;
  return {
    ...{ registryId, revision, etag: undefined, digest: '' },
    get routes() {
      return (routes ??= list());
    },
  };
}

function factsOf({ registryId, revision, routes }: FoundSet): SetFacts {
  return { registryId, revision, size: routes.length };
}

function polledOf(found: JudgedResult): Polled {
  switch (found.kind) {
    case 'set':
      return { kind: 'set', facts: factsOf(found.set) };
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
