// The API behind passes: answers `/paid/CONDUCT/ORDER` as the path says, writes every run down, and holds answers back for as long
// as somebody wants processes to die in between.
import { startUpstream, type Upstream } from '../../../support/upstream.ts';
import type { Conduct } from '../plan.ts';
import { act } from '../upstream.ts';
import type { PassJournal } from './pass-journal.ts';

const SLOW_MS = 300;
const PATH = /^\/paid\/([a-z_]+)\/([a-z0-9.]+)/;
/** Conducts in a path; a second run of an order is `small`. */
const CONDUCTS: readonly Conduct[] = ['small', 'large', 'slow', 'not_found', 'fails', 'hangs_up', 'breaks_off'];

export type DrawnApi = {
  readonly start: (who: string) => Promise<Upstream>;
  /** Answers everything that is held. */
  readonly release: () => void;
};

export function createDrawnApi({ runs }: PassJournal): DrawnApi {
  const seen = new Set<string>();
  const held = new Set<() => void>();
  return {
    release: () => {
      for (const go of held) go();
      held.clear();
    },
    start: (who) =>
      startUpstream((req, res) => {
        const [, said = '', order = ''] = PATH.exec(req.url ?? '') ?? [];
        const useId = String(req.headers['tollgate-use-id'] ?? '');
        const run = runs.length + 1;
        const seenRun = { run, order, who, at: performance.now(), useId, hasBegun: false, endedAt: Infinity };
        runs.push(seenRun);
        const conduct = seen.has(order) ? 'small' : (CONDUCTS.find((each) => each === said) ?? 'small');
        seen.add(order);
        res.on('close', () => {
          seenRun.hasBegun = res.headersSent;
          seenRun.endedAt = performance.now();
        });
        req.resume();
        const answer = (): void => {
          if (res.closed) return;
          act({ conduct, slowMs: SLOW_MS, n: run, run }, req, res).catch(() => res.destroy());
        };
        if (said === 'held') held.add(answer);
        else answer();
      }),
  };
}
