// Keeps the publication in step with the routes and the configuration in force. It is made anew after a change, once for
// all that come together; meanwhile the one before is served. A set that takes long to tell is told less often, so that
// all this takes a quarter of one core at most.
import type { Config } from '../../config/config.ts';
import type { MadePublication, Publication } from '../../domain/discovery/publication.ts';
import type { CurrentSnapshot } from '../../gateway/routes/current-snapshot.ts';
import type { PublicationInForce } from '../../gateway/public-documents.ts';
import type { Clock, Schedule } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import { countLeftOut, makePublication, publicationWarnings, publishingOf } from './publication.ts';

export type Publisher = PublicationInForce & {
  /** Makes it anew for the configuration in force, and says what is public. */
  readonly refresh: () => void;
  /** Makes it anew if something changed. */
  readonly wake: () => void;
  /** Called with each publication that differs from the one before. */
  readonly onPublished: (listener: (publication: Publication) => void) => void;
  readonly close: () => void;
};

/** The owner's document that was read last, as JSON; `unread`: it is being read, and nothing is told without it. */
export type OwnerInForce = { readonly json: string } | 'unread' | undefined;

type PublisherDeps = {
  /** The configuration in force. */
  readonly settings: { readonly config: Config };
  readonly current: Pick<CurrentSnapshot, 'snapshot' | 'onSwap'>;
  readonly owner: () => OwnerInForce;
  readonly schedule: Schedule;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
};

/** Changes that come together. */
const GATHER_MS = 25;
/** Rest after one that was made, as a multiple of the time it took. */
const REST = 3;
const LONGEST_REST_MS = 60_000;

export function startPublisher(deps: PublisherDeps): Publisher {
  const { settings, current, owner, schedule, clock, log } = deps;
  const listeners: ((publication: Publication) => void)[] = [];
  const state: { publication: Publication | undefined } = { publication: undefined };
  let cancel: (() => void) | undefined;
  let making = false;
  /** Something changed while one was made. */
  let isStale = false;
  /** A new configuration came while one was made. */
  let isUrgent = false;
  let isTold = false;
  let restUntil = 0;
  let closed = false;
  let said = '';

  const wake = (): void => {
    if (closed || cancel !== undefined) return;
    if (making) {
      isStale = true;
      return;
    }
    const waitMs = Math.max(GATHER_MS, restUntil - clock.monotonic());
    cancel = schedule(waitMs, () => {
      cancel = undefined;
      void make();
    });
  };

  const tell = ({ report }: MadePublication): void => {
    const warnings = publicationWarnings(report);
    const told = JSON.stringify(warnings);
    if (!isTold) {
      log.info('what is sold is told to everybody', {
        at: '/openapi.json, /llms.txt',
        operations: report.operations.length,
        left_out: countLeftOut(report),
        bytes: report.bytes,
      });
    }
    if (!isTold || told !== said) for (const warning of warnings) log.warn(warning);
    isTold = true;
    said = told;
  };

  const make = async (): Promise<void> => {
    const config = publishingOf(settings.config);
    const { snapshot } = current;
    const document = owner();
    if (config === undefined || snapshot === undefined || document === 'unread') return;
    making = true;
    const startedAt = clock.monotonic();
    try {
      const made = await makePublication(config, document?.json, snapshot);
      if (closed) return;
      if (made.publication.digest !== state.publication?.digest) {
        state.publication = made.publication;
        for (const listener of listeners) listener(made.publication);
      }
      tell(made);
    } catch (error) {
      if (!closed) log.error('what is sold could not be written down; what was told before stays', { error });
    }
    const tookMs = clock.monotonic() - startedAt;
    restUntil = isUrgent ? 0 : clock.monotonic() + Math.min(LONGEST_REST_MS, REST * tookMs);
    if (isUrgent) isTold = false;
    isUrgent = false;
    making = false;
    if (!isStale) return;
    isStale = false;
    wake();
  };

  current.onSwap(wake);
  return Object.assign(state, {
    wake,
    refresh: () => {
      isTold = false;
      isUrgent = making;
      restUntil = 0;
      cancel?.();
      cancel = undefined;
      wake();
    },
    onPublished: (listener: (publication: Publication) => void) => void listeners.push(listener),
    close: () => {
      closed = true;
      cancel?.();
    },
  });
}
