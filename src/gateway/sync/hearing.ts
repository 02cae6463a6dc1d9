// Decides what an event of a registry's stream, or the name of its set, means for the set in force. It is applied, it
// is proven by its digest, or it is a reason to ask for what is missing or for the whole set.
import type { Clock } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { RegistryEvent, SetHead } from './follow/event-reader.ts';
import type { AfterEvent } from './follow.ts';
import type { LastGoodSet, PollResult } from './last-good.ts';
import type { FetchResult, SetName } from './follow/route-source.ts';

type HearingDeps = {
  readonly inForce: Pick<LastGoodSet, 'known' | 'change' | 'prove' | 'judge' | 'answered'>;
  /** `anew`: whatever is known of it. */
  readonly takeWhole: (want: 'changed' | 'anew') => void;
  /** The stream has something to tell. */
  readonly reconnect: () => void;
  readonly count: (result: PollResult) => void;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
};

type Hearing = {
  readonly hear: (event: RegistryEvent) => Promise<AfterEvent>;
  /** What a poll found, which was sent when `asked` was in force. Undefined: an answer, and no word yet on the set in force. */
  readonly judge: (found: FetchResult, asked: number | undefined) => Promise<PollResult | undefined>;
  /** The set is now what the registry sent as a whole, and has to be proven. */
  readonly takenAnew: () => void;
};

/** How long a stream may tell nothing of a change that polls know of. */
const STREAM_LAG_MS = 10_000;

export function createHearing({ inForce, takeWhole, reconnect, count, clock, log }: HearingDeps): Hearing {
  /** Since when polls have found the registry ahead of this revision. */
  let ahead: { readonly of: number; readonly sinceMs: number } | undefined;
  let isUnproven = false;
  /** The revision after which something was missing last. */
  let gapAfter: number | undefined;

  const stopFor = (want: 'changed' | 'anew'): AfterEvent => {
    takeWhole(want);
    return 'stop';
  };
  /** The stream is asked for what is missing; if it has nothing to tell, the whole set is. */
  const missing = (): AfterEvent => {
    const revision = inForce.known?.revision;
    if (gapAfter === revision) return stopFor('changed');
    gapAfter = revision;
    return 'again';
  };
  const compare = ({ registryId, revision }: SetName, asked = 0): 'same' | 'gap' | 'differs' => {
    const { known } = inForce;
    if (known?.revision === undefined || registryId !== known.registryId || revision === undefined) return 'differs';
    if (revision < asked) return 'differs';
    if (revision <= known.revision) return 'same';
    // The stream tells it, or will; one that has told nothing for a while does not.
    if (ahead?.of !== known.revision) ahead = { of: known.revision, sinceMs: clock.monotonic() };
    return clock.monotonic() - ahead.sinceMs >= STREAM_LAG_MS ? 'differs' : 'gap';
  };
  const hold = async (head: SetHead): Promise<AfterEvent> => {
    const proof = await inForce.prove(head);
    switch (proof) {
      case 'same':
        isUnproven = false;
        count(await inForce.judge({ kind: 'unchanged' }));
        return 'on';
      case 'gap':
        return missing();
      case 'lower':
        return stopFor('changed');
      case 'differs': {
        const { revision } = head;
        if (isUnproven) {
          log.warn('the registry gives another digest than its own set has; its routes are polled', { revision });
          return 'useless';
        }
        log.warn('the routes in force are not those of the registry and are taken anew', { revision });
        return stopFor('anew');
      }
      default:
        return proof satisfies never;
    }
  };

  return {
    hear: async (event) => {
      switch (event.kind) {
        case 'created':
        case 'updated':
        case 'deleted': {
          const result = await inForce.change(event);
          if (result === 'applied') count('updated');
          if (result === 'refused') return stopFor('changed');
          return result === 'gap' ? missing() : 'on';
        }
        case 'head':
          return hold(event);
        case 'reset':
          return stopFor('changed');
        case 'unreadable':
          log.error('the event stream cannot be read', { reason: event.reason });
          return stopFor('changed');
        default:
          return event satisfies never;
      }
    },
    judge: async (found, asked) => {
      if (found.kind !== 'named') return inForce.judge(found);
      inForce.answered();
      const proof = compare(found, asked);
      if (proof === 'same') return inForce.judge({ kind: 'unchanged' });
      if (proof === 'gap') reconnect();
      else takeWhole('changed');
      return undefined;
    },
    takenAnew: () => {
      isUnproven = true;
    },
  };
}
