// Readiness: whether a payment could be taken, as far as this process knows. Asked when /readyz is, never by itself: an
// idle process writes nothing. A result is good for a few seconds. While it is asked for, all wait for the same answer,
// and no longer than a probe does.
import type { Check, CheckResult } from '../host/admin.ts';
import { systemSchedule, type Clock } from '../host/clock.ts';
import { messageOf } from '../host/error-message.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import { settlesWithin } from '../host/within.ts';
import { StoreRefused } from '../registry/store/ports.ts';

/** Latest finding. `at`: milliseconds of the monotonic clock. */
type ReadinessFinding =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'works'; readonly at: number }
  | { readonly kind: 'fails'; readonly reason: string };

export type Readiness = {
  readonly check: Check;
  /** Whether the last answer was a good one. */
  readonly isPossible: () => boolean;
};

type ReadinessDeps = { readonly clock: Pick<Clock, 'monotonic'>; readonly log: Log };

const FRESH_MS = 5_000;
/** Longest wait for an answer: below what orchestrators wait for a probe. */
const WAIT_MS = 1_500;

/** Time after which a store that goes on refusing may refuse this process alone. */
const REFUSED_MS = 30_000;

/**
 * A store of this process: `write` changes a row and resolves once that is on the disk. `isShared`: by other processes
 * too. Once a shared store has worked, its failure is only named: else all processes would be taken out at once, and
 * free routes with them. In a process without a proxy (`hasProxy`), a store that goes on refusing (StoreRefused) ends
 * readiness: it may refuse this process alone.
 */
export function storeReadiness(
  write: () => Promise<void>,
  { clock, log }: ReadinessDeps,
  { isShared, hasProxy }: { readonly isShared: boolean; readonly hasProxy: boolean },
): Readiness {
  let refusedSince: number | undefined;
  const trying = async (): Promise<void> => {
    try {
      await write();
      refusedSince = undefined;
    } catch (error) {
      if (error instanceof StoreRefused) refusedSince ??= clock.monotonic();
      throw error;
    }
  };
  const isRefused = (): boolean =>
    refusedSince !== undefined && clock.monotonic() - refusedSince >= REFUSED_MS && !hasProxy;
  const asked = createAsking(trying, clock, (reason) =>
    reason === undefined
      ? log.info('the store takes writes again')
      : log.error('the store takes no writes', { reason }),
  );
  return {
    isPossible: asked.isWorking,
    check: {
      name: 'store',
      run: async () => {
        const found = await asked.ask();
        if (found.kind === 'works') return { ok: true, detail: 'the store takes writes' };
        const isTolerated = isShared && asked.hasWorked() && !isRefused();
        const detail = `the store does not take writes: ${failureReason(found)}`;
        return { ok: false, isTolerated, detail: isTolerated ? `degraded: ${detail}` : detail };
      },
    },
  };
}

/**
 * The ledger of a registry elsewhere: `call` needs the scope `ledger` there. Until it worked once this process is not
 * ready; what happens later is named, but free routes have to go on.
 */
export function ledgerReadiness(call: () => Promise<void>, { clock, log }: ReadinessDeps): Readiness {
  const asked = createAsking(call, clock, (reason) => {
    if (reason === undefined) log.info('the ledger of the registry takes payments again');
    else log.error('the ledger of the registry takes no payments: paid requests are answered 503', { reason });
  });
  return {
    isPossible: asked.isWorking,
    check: {
      name: 'payments',
      run: async (): Promise<CheckResult> => {
        const found = await asked.ask();
        if (found.kind === 'works') return { ok: true, detail: 'the ledger of the registry takes payments' };
        return { ok: false, isTolerated: asked.hasWorked(), detail: failureReason(found) };
      },
    },
  };
}

export function observePossible(metrics: Metrics, isPossible: () => boolean): void {
  const help = '1 while payments can be taken, as far as is known: what keeps them was asked last with success.';
  metrics.observed('gauge', 'payments_possible', help, [], (set) => set({}, isPossible() ? 1 : 0));
}

type ReadinessProbe = {
  readonly ask: () => Promise<ReadinessFinding>;
  readonly isWorking: () => boolean;
  /** Whether it ever worked. */
  readonly hasWorked: () => boolean;
};

/** Makes the asking. `changed` hears of the first failure of an outage, and with undefined of its end. */
function createAsking(
  run: () => Promise<void>,
  { monotonic }: Pick<Clock, 'monotonic'>,
  changed: (reason: string | undefined) => void,
): ReadinessProbe {
  let found: ReadinessFinding = { kind: 'nothing' };
  let hasWorked = false;
  let running: Promise<void> | undefined;

  const settle = (next: ReadinessFinding): void => {
    if (next.kind === 'fails' && found.kind !== 'fails') changed(next.reason);
    if (next.kind === 'works' && found.kind === 'fails') changed(undefined);
    found = next;
    hasWorked ||= next.kind === 'works';
  };
  const start = (): Promise<void> =>
    (running ??= run()
      .then(
        () => settle({ kind: 'works', at: monotonic() }),
        (error: unknown) => settle({ kind: 'fails', reason: messageOf(error) }),
      )
      .finally(() => {
        running = undefined;
      }));
  const isFresh = (): boolean => found.kind === 'works' && monotonic() - found.at <= FRESH_MS;
  void start();

  return {
    isWorking: () => found.kind === 'works',
    hasWorked: () => hasWorked,
    ask: async () => {
      if (isFresh()) return found;
      if (!(await settlesWithin(start(), WAIT_MS, systemSchedule)))
        settle({ kind: 'fails', reason: `there was no answer within ${WAIT_MS} milliseconds` });
      return found;
    },
  };
}

function failureReason(found: ReadinessFinding): string {
  return found.kind === 'fails' ? found.reason : 'there is no answer yet';
}
