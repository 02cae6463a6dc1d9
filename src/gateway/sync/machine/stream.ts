// The event stream: how it opened, what each event means for the set in force, and what follows when it ends. An event is
// applied, it proves the set by its digest, or it is a reason to ask for what is missing or for the whole set.
import type { SetProof } from '../../../domain/routing/set-proof.ts';
import type { RegistryEvent, SetHead } from '../follow/event-reader.ts';
import type { OpenedEvents } from '../follow/route-source.ts';
import { nudge, openStream, streamBackOffMs, takeWhole, waitForStream } from './calls.ts';
import { confirmSame, takeChange } from './set-in-force.ts';
import type { CompiledChange } from './state.ts';
import { tell, type Turn } from './turn.ts';

/** A registry that has no stream today may have one after its next update. */
const NOT_OFFERED_WAIT_MS = 10 * 60_000;
/** A stream that lived this long was a good one: its break counts as the first. */
const GOOD_STREAM_MS = 2_000;

export function streamDue(turn: Turn): void {
  if (turn.stream.place.at === 'waiting') openStream(turn);
}

export function streamOpened(turn: Turn, id: number, opened: OpenedEvents): void {
  const { moment, set, stream } = turn;
  if (!isCurrent(turn, id)) return;
  switch (opened.kind) {
    case 'open':
      stream.hasFollowed = true;
      stream.place = { at: 'open', id, openedMs: moment.monotonicMs };
      if (set.away) nudge(turn);
      return;
    case 'stranger':
      takeWhole(turn, 'changed');
      return;
    case 'not_offered':
      waitForStream(turn, NOT_OFFERED_WAIT_MS, { expected: false });
      return;
    case 'refused': {
      tell(turn, 'debug', 'no event stream', { reason: opened.reason });
      const waitMs = Math.max(opened.retryAfterMs ?? 0, streamBackOffMs(turn));
      waitForStream(turn, waitMs, { expected: false });
      return;
    }
    case 'unavailable':
      tell(turn, 'debug', 'no event stream', { reason: opened.reason });
      // Trouble of a registry that has no stream at all looks the same.
      waitForStream(turn, streamBackOffMs(turn), { expected: stream.hasFollowed || !opened.isThere });
      return;
    default:
      opened satisfies never;
  }
}

export function streamEnded(turn: Turn, id: number, error: unknown): void {
  const { moment, stream } = turn;
  if (!isCurrent(turn, id)) return;
  if (error !== undefined) tell(turn, 'debug', 'the event stream broke off', { error });
  const { place } = stream;
  if (place.at === 'open' && moment.monotonicMs - place.openedMs >= GOOD_STREAM_MS) stream.failures = 0;
  waitForStream(turn, streamBackOffMs(turn), { expected: true });
}

export function eventCame(turn: Turn, id: number, event: RegistryEvent): void {
  if (!isCurrent(turn, id)) return;
  switch (event.kind) {
    case 'created':
    case 'updated':
    case 'deleted': {
      const known = turn.set.good?.set.revision;
      if (known === undefined || event.revision > known + 1) askForMissing(turn);
      else if (event.revision === known + 1) turn.effects.push({ kind: 'compile_change', change: event });
      return;
    }
    case 'head':
      compareHead(turn, event);
      return;
    case 'reset':
      takeWhole(turn, 'changed');
      return;
    case 'unreadable':
      tell(turn, 'error', 'the event stream cannot be read', { reason: event.reason });
      takeWhole(turn, 'changed');
      return;
    default:
      event satisfies never;
  }
}

/** The change that an event told was compiled. */
export function changeCompiled(turn: Turn, revision: number, taken: CompiledChange): void {
  if (takeChange(turn, revision, taken)) turn.effects.push({ kind: 'count', result: 'updated' });
  else takeWhole(turn, 'changed');
}

/** The set in force was proven, to be compared with the head that the registry told. */
export function setProven(turn: Turn, head: SetHead, proof: SetProof): void {
  if (head.digest !== proof.digest || head.routes !== proof.routes) {
    setDiffers(turn, head.revision);
    return;
  }
  turn.stream.isUnproven = false;
  confirmSame(turn);
}

function compareHead(turn: Turn, head: SetHead): void {
  const { good } = turn.set;
  const known = good?.set.revision;
  if (known === undefined || head.revision > known) askForMissing(turn);
  else if (head.revision < known) takeWhole(turn, 'changed');
  else if (head.routes !== good?.size) setDiffers(turn, head.revision);
  else turn.effects.push({ kind: 'prove', head });
}

function setDiffers(turn: Turn, revision: number): void {
  if (turn.stream.isUnproven) {
    tell(turn, 'warn', 'the registry gives another digest than its own set has; its routes are polled', { revision });
    waitForStream(turn, NOT_OFFERED_WAIT_MS, { expected: false });
    return;
  }
  tell(turn, 'warn', 'the routes in force are not those of the registry and are taken anew', { revision });
  takeWhole(turn, 'anew');
}

/** Asks the stream for what is missing; if it had nothing to tell after this revision before, takes the whole set. */
function askForMissing(turn: Turn): void {
  const { set, stream } = turn;
  const revision = set.good?.set.revision;
  if (stream.gapAfter === revision) {
    takeWhole(turn, 'changed');
    return;
  }
  stream.gapAfter = revision;
  waitForStream(turn, 0, { expected: true });
}

/** Whether `id` is the stream that is open or being opened; what one that was left still tells is not heard. */
function isCurrent({ stream: { place } }: Turn, id: number): boolean {
  return (place.at === 'opening' || place.at === 'open') && place.id === id;
}
