// What needs somebody, gathered from the parts of this process: each adds a source, and none knows another. Asked every few seconds
// and by whoever looks; readiness tells the same sentences. A registry's process shares it with the others on its store.
import type { AttentionEntry, AttentionFinding } from '../domain/attention/attention.ts';
import type { Check } from '../host/admin.ts';
import type { Schedule } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { settlesWithin } from '../host/within.ts';
import type { PublishedAttention } from '../registry/store/attention-ports.ts';

/** `isAsked`: somebody waits for the answer, so a question that costs something may be asked. */
type AttentionSource = (isAsked: boolean) => readonly AttentionFinding[] | Promise<readonly AttentionFinding[]>;

export type Attention = {
  readonly add: (source: AttentionSource) => void;
  /** What this process found last. */
  readonly latest: () => readonly AttentionFinding[];
  /** What stands at this moment, worst first, over all processes that share the store. */
  readonly ask: () => Promise<readonly AttentionEntry[]>;
  /** Shares what is found from now on; without it, what this process finds is all there is. */
  readonly share: (publish: PublishAttention) => void;
  readonly check: Check;
  readonly close: () => void;
};
type PublishAttention = (findings: readonly AttentionFinding[]) => Promise<PublishedAttention>;

/** A source, what it found last, and the question that has no answer yet. */
type AskedSource = {
  readonly ask: AttentionSource;
  found: readonly AttentionFinding[];
  asking: Promise<void> | undefined;
};

type AttentionDeps = { readonly schedule: Schedule; readonly now: () => number; readonly log: Log };

const EVERY_MS = 10_000;
/** Longest wait for a source, as for a readiness probe: a store that is away keeps its callers for longer than that. */
const WAIT_MS = 1_500;
/** Sentences that readiness shows. */
const MOST_SHOWN = 10;

export function createAttention({ schedule, now, log }: AttentionDeps): Attention {
  const sources: AskedSource[] = [];
  let latest: readonly AttentionFinding[] = [];
  let publish: PublishAttention | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let failing = false;

  /** Asks a source. While its answer is awaited all wait for the same one, and what it found last stands. */
  const refresh = (source: AskedSource, isAsked: boolean): Promise<void> => {
    const asking = async (): Promise<void> => {
      try {
        source.found = await source.ask(isAsked);
      } catch (error) {
        // Who cannot say is told of by what needs it.
        log.debug('what needs somebody could not be asked', { error });
        source.found = [];
      }
    };
    return (source.asking ??= asking().finally(() => (source.asking = undefined)));
  };
  const gather = async (isAsked: boolean): Promise<void> => {
    await Promise.all(sources.map((source) => settlesWithin(refresh(source, isAsked), WAIT_MS, schedule)));
    latest = sources.flatMap(({ found }) => found);
  };
  const alone = (): readonly AttentionEntry[] => latest.map((each) => ({ ...each, since: now() }));
  const look = async (isAsked: boolean): Promise<readonly AttentionEntry[]> => {
    await gather(isAsked);
    if (publish === undefined) return alone();
    try {
      const { entries, raised, cleared } = await publish(latest);
      failing = false;
      for (const { code, subject, detail } of raised) log.warn('needs attention', { code, subject, detail });
      for (const { code, subject } of cleared) log.info('needs attention no more', { code, subject });
      return entries;
    } catch (error) {
      if (!failing) log.warn('what needs somebody could not be shared', { error });
      failing = true;
      return alone();
    }
  };
  /** One look at a time: who asks meanwhile waits for the next. */
  const ask = (isAsked: boolean): Promise<readonly AttentionEntry[]> => {
    const looking = last.then(() => look(isAsked));
    last = looking.catch(() => undefined);
    return looking;
  };

  let closed = false;
  let cancel = (): void => undefined;
  const wait = (): void => {
    cancel = schedule(EVERY_MS, () => {
      void ask(false).then(() => {
        if (!closed) wait();
      });
    });
  };
  wait();
  return {
    add: (source) => void sources.push({ ask: source, found: [], asking: undefined }),
    latest: () => latest,
    ask: () => ask(true),
    share: (given) => void (publish = given),
    check: {
      name: 'attention',
      run: async () => {
        await gather(false);
        if (latest.length === 0) return { ok: true, detail: 'nothing needs somebody' };
        const shown = latest.slice(0, MOST_SHOWN).map(({ detail }) => detail);
        const more = latest.length - shown.length;
        return { ok: false, isTolerated: true, detail: `${shown.join(' ')}${more > 0 ? ` And ${more} more.` : ''}` };
      },
    },
    close: () => {
      closed = true;
      cancel();
    },
  };
}
