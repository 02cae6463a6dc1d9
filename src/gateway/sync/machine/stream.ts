// The event stream: how it opened, what each event means for the set in force, and what follows when it ends. An event is
// applied, it proves the set by its digest, or it is a reason to ask for what is missing or for the whole set.
import type { SetProof } from '../../../domain/routing/set-proof.ts';
import type { RegistryEvent, SetHead } from '../follow/event-reader.ts';
import type { OpenedEvents } from '../follow/route-source.ts';
import { nudge, openStream, streamBackOffMs, takeWhole, waitForStream } from './calls.ts';
import { confirmSame, takeChange } from './set-in-force.ts';
import type { CompiledChange } from './state.ts';
import { tell, type StepDraft } from './step-draft.ts';

/** A registry that has no stream today may have one after its next update. */
const NOT_OFFERED_WAIT_MS = 10 * 60_000;
/** A stream that lived this long was a good one: its break counts as the first. */
const GOOD_STREAM_MS = 2_000;

export function streamDue(draft: StepDraft): void {
  if (draft.stream.place.at === 'waiting') openStream(draft);
}

export function streamOpened(draft: StepDraft, id: number, opened: OpenedEvents): void {
  const { moment, set, stream } = draft;
  if (!isCurrent(draft, id)) return;
  switch (opened.kind) {
    case 'open':
      stream.hasFollowed = true;
      stream.place = { at: 'open', id, openedMs: moment.monotonicMs };
      if (set.away) nudge(draft);
      return;
    case 'stranger':
      takeWhole(draft, 'changed');
      return;
    case 'not_offered':
      waitForStream(draft, NOT_OFFERED_WAIT_MS, { expected: false });
      return;
    case 'refused': {
      tell(draft, 'debug', 'no event stream', { reason: opened.reason });
      const waitMs = Math.max(opened.retryAfterMs ?? 0, streamBackOffMs(draft));
      waitForStream(draft, waitMs, { expected: false });
      return;
    }
    case 'unavailable':
      tell(draft, 'debug', 'no event stream', { reason: opened.reason });
      // Trouble of a registry that has no stream at all looks the same.
      waitForStream(draft, streamBackOffMs(draft), { expected: stream.hasFollowed || !opened.isThere });
      return;
    default:
      opened satisfies never;
  }
}

export function streamEnded(draft: StepDraft, id: number, error: unknown): void {
  const { moment, stream } = draft;
  if (!isCurrent(draft, id)) return;
  if (error !== undefined) tell(draft, 'debug', 'the event stream broke off', { error });
  const { place } = stream;
  if (place.at === 'open' && moment.monotonicMs - place.openedMs >= GOOD_STREAM_MS) stream.failures = 0;
  waitForStream(draft, streamBackOffMs(draft), { expected: true });
}

export function eventCame(draft: StepDraft, id: number, event: RegistryEvent): void {
  if (!isCurrent(draft, id)) return;
  switch (event.kind) {
    case 'created':
    case 'updated':
    case 'deleted': {
      const known = draft.set.good?.set.revision;
      if (known === undefined || event.revision > known + 1) askForMissing(draft);
      else if (event.revision === known + 1) draft.effects.push({ kind: 'compile_change', change: event });
      return;
    }
    case 'head':
      compareHead(draft, event);
      return;
    case 'reset':
      takeWhole(draft, 'changed');
      return;
    case 'unreadable':
      tell(draft, 'error', 'the event stream cannot be read', { reason: event.reason });
      takeWhole(draft, 'changed');
      return;
    default:
      event satisfies never;
  }
}

/** The change that an event told was compiled. */
export function changeCompiled(draft: StepDraft, revision: number, taken: CompiledChange): void {
  if (takeChange(draft, revision, taken)) draft.effects.push({ kind: 'count', result: 'updated' });
  else takeWhole(draft, 'changed');
}

/** The set in force was proven, to be compared with the head that the registry told. */
export function setProven(draft: StepDraft, head: SetHead, proof: SetProof): void {
  if (head.digest !== proof.digest || head.routes !== proof.routes) {
    setDiffers(draft, head.revision);
    return;
  }
  draft.stream.isUnproven = false;
  confirmSame(draft);
}

function compareHead(draft: StepDraft, head: SetHead): void {
  const { good } = draft.set;
  const known = good?.set.revision;
  if (known === undefined || head.revision > known) askForMissing(draft);
  else if (head.revision < known) takeWhole(draft, 'changed');
  else if (head.routes !== good?.size) setDiffers(draft, head.revision);
  else draft.effects.push({ kind: 'prove', head });
}

function setDiffers(draft: StepDraft, revision: number): void {
  if (draft.stream.isUnproven) {
    tell(draft, 'warn', 'the registry gives another digest than its own set has; its routes are polled', { revision });
    waitForStream(draft, NOT_OFFERED_WAIT_MS, { expected: false });
    return;
  }
  tell(draft, 'warn', 'the routes in force are not those of the registry and are taken anew', { revision });
  takeWhole(draft, 'anew');
}

/** Asks the stream for what is missing; if it had nothing to tell after this revision before, takes the whole set. */
function askForMissing(draft: StepDraft): void {
  const { set, stream } = draft;
  const revision = set.good?.set.revision;
  if (stream.gapAfter === revision) {
    takeWhole(draft, 'changed');
    return;
  }
  stream.gapAfter = revision;
  waitForStream(draft, 0, { expected: true });
}

/** Whether `id` is the stream that is open or being opened; what one that was left still tells is not heard. */
function isCurrent({ stream: { place } }: StepDraft, id: number): boolean {
  return (place.at === 'opening' || place.at === 'open') && place.id === id;
}
