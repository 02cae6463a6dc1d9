// The dry runs of plans as an operator has to see them: at the start, in /readyz?verbose, as a metric, and in the log a minute
// before each one ends and at that moment. A dry run that is forgotten is a free API.
import type { Config } from '../config/config.ts';
import type { SalesPlan } from '../domain/selling/plan.ts';
import type { Check } from '../host/admin.ts';
import type { Schedule } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';

type ObservationWatchDeps = {
  readonly config: () => Config;
  readonly now: () => number;
  readonly schedule: Schedule;
  readonly metrics: Metrics;
  readonly log: Log;
};

export type ObservationWatch = {
  readonly check: Check;
  /** Says what the configuration in force observes, and looks after its ends. Called at a start and after each reload. */
  readonly begin: () => void;
  readonly close: () => void;
};

const NOTICE_MS = 60_000;
/** A timer holds no more than 24 days; so long, nothing is looked at in between. */
const LONGEST_WAIT_MS = 3_600_000;

type ObservingPlan = Pick<SalesPlan, 'id'> & { readonly untilMs: number };

export function watchObservations({ config, now, schedule, metrics, log }: ObservationWatchDeps): ObservationWatch {
  let cancel = (): void => undefined;
  /** Plans that were said to end soon, and those that were said to have ended, by their end. */
  let noticed = new Set<string>();
  const help = 'When the dry run of a plan ends, seconds since the epoch.';
  metrics.observed('gauge', 'observe_until_timestamp_seconds', help, ['plan'], (set) => {
    for (const { id, untilMs } of observing(config())) set({ plan: id }, untilMs / 1000);
  });

  const look = (): void => {
    const at = now();
    let next = LONGEST_WAIT_MS;
    for (const { id, untilMs } of observing(config())) {
      const until = new Date(untilMs).toISOString();
      const [soon, over] = [`soon ${id} ${untilMs}`, `over ${id} ${untilMs}`];
      if (at >= untilMs) {
        if (!noticed.has(over))
          log.warn('the dry run of a plan is over: its routes charge from now on', { plan: id, until });
        noticed.add(over);
        continue;
      }
      if (at >= untilMs - NOTICE_MS && !noticed.has(soon)) {
        noticed.add(soon);
        log.warn('the dry run of a plan ends in a minute: its routes charge from then on', { plan: id, until });
      }
      next = Math.min(next, at < untilMs - NOTICE_MS ? untilMs - NOTICE_MS - at : untilMs - at);
    }
    cancel = schedule(next, look);
  };

  return {
    check: { name: 'observe', run: () => ({ ok: true, detail: describe(observing(config()), now()) }) },
    begin: () => {
      cancel();
      const plans = observing(config());
      if (plans.length === 0) return;
      noticed = new Set();
      for (const { id, untilMs } of plans) {
        const until = new Date(untilMs).toISOString();
        if (now() < untilMs)
          log.warn('a plan observes: its routes are free for everybody until then', { plan: id, until });
        else {
          noticed.add(`over ${id} ${untilMs}`);
          log.warn('the dry run of a plan is over: its routes charge; take `observe` out', { plan: id, until });
        }
      }
      look();
    },
    close: () => cancel(),
  };
}

function describe(plans: readonly ObservingPlan[], at: number): string {
  const words = plans
    .filter(({ untilMs }) => at < untilMs)
    .map(({ id, untilMs }) => `the plan ${id} observes until ${new Date(untilMs).toISOString()}: its routes are free`);
  return words.length === 0 ? 'no plan observes' : words.join('; ');
}

function observing({ selling }: Pick<Config, 'selling'>): readonly ObservingPlan[] {
  return [...selling.plans.byId.values()].flatMap(({ id, observe }) =>
    observe === undefined ? [] : [{ id, untilMs: observe.untilMs }],
  );
}

/** Warns of the dry runs of a configuration, for `check`. */
export function observationWarnings(config: Pick<Config, 'selling'>, nowMs: number): string[] {
  return observing(config).map(({ id, untilMs }) => {
    const until = new Date(untilMs).toISOString();
    return nowMs < untilMs
      ? `the plan ${id} observes: its routes are free for everybody until ${until}`
      : `the dry run of the plan ${id} ended at ${until}: its routes charge; take \`observe\` out`;
  });
}
