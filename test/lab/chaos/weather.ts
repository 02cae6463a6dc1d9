// What goes wrong while payers ask, until it is calm: settlements, facilitators that are away, connections that are cut, slow
// or held.
import type { Fault, TestFacilitator } from '../../support/facilitator-server.ts';
import type { Draw } from '../simulation/scheduler.ts';
import type { Gate } from '../../support/gate.ts';
import { noteWeather, type Journal } from './journal.ts';

export type Weather = {
  readonly begin: (draw: Draw) => void;
  /** Resolves when nothing goes wrong any more. */
  readonly calm: () => Promise<void>;
};

/** `turn` does one thing and returns the milliseconds to the next. */
export type Part = { readonly turn: (draw: Draw) => number; readonly calm: () => Promise<void> | void };

export function createWeather(parts: readonly Part[]): Weather {
  let raging = false;
  const go = (turn: Part['turn'], draw: Draw): void => {
    if (raging) setTimeout(go, turn(draw), turn, draw);
  };
  return {
    begin: (draw) => {
      raging = true;
      for (const { turn } of parts) go(turn, draw);
    },
    calm: async () => {
      raging = false;
      for (const { calm } of parts) await calm();
    },
  };
}

const FAULTS: readonly [Fault, ...Fault[]] = [
  { kind: 'drop_before' },
  { kind: 'drop_after' },
  { kind: 'hold_after' },
  { kind: 'answer', status: 500, body: { error: 'internal' } },
  { kind: 'answer', status: 429, body: { error: 'slow down' }, headers: { 'retry-after': '1' } },
  { kind: 'answer', status: 401, body: { error: 'who are you' } },
  {
    kind: 'answer',
    body: { success: false, errorReason: 'unexpected_settle_error', transaction: '', network: 'base' },
  },
  { kind: 'answer', body: { success: false, errorReason: 'unsupported_scheme', transaction: '', network: 'base' } },
  { kind: 'answer', body: '<html>' },
  { kind: 'raw', bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"success":true' },
];

/**
 * Settlements that go wrong, `wrong` of all, however fast they come; a facilitator that forgets, and now and then one that is
 * gone for a moment.
 */
export function facilitatorWeather(facilitator: TestFacilitator, gate: Gate, journal: Journal, wrong: number): Part {
  let shutting: Promise<void> = Promise.resolve();
  let seen = 0;
  const isSettle = ({ operation }: TestFacilitator['calls'][number]): boolean => operation === 'settle';
  return {
    turn: (draw) => {
      const calls = facilitator.calls.slice(seen);
      const settles = calls.filter(isSettle).length;
      seen = facilitator.calls.length;
      for (let n = 0; n < settles; n++) {
        if (!draw.chance(wrong)) continue;
        facilitator.fault('settle', draw.pick(FAULTS));
        noteWeather(journal, 'facilitator: a settlement goes wrong');
      }
      // Nobody is there for faults to wait for: they would all meet the next payer.
      if (calls.length > 0 && draw.chance(0.15))
        facilitator.fault('verify', draw.pick(FAULTS.slice(3) as [Fault, ...Fault[]]));
      if (draw.chance(0.03)) facilitator.forget();
      if (draw.chance(0.04)) {
        noteWeather(journal, 'facilitator: away for a moment');
        shutting = shutting.then(async () => {
          await gate.shut();
          await new Promise((resolve) => {
            setTimeout(resolve, 50 + draw.below(300));
          });
          await gate.open();
        });
      }
      return 40 + draw.below(80);
    },
    calm: async () => {
      facilitator.clearFaults();
      await shutting;
    },
  };
}

/** `isDatabase`: commits pass there. */
export type Links = readonly { readonly what: string; readonly gate: Gate; readonly isDatabase: boolean }[];

const CUTS = { 'commit asked': 'asked', 'commit answered': 'answered' } as const;
const CUT_AT = { asked: 'before a commit arrives', answered: 'before the answer of a commit' } as const;
/** A whole transaction, or from where one says that a charge is settled, as it is bound. */
const HELD_AT = ['BEGIN', '"settled"', '"settled"'] as const;
/** A lease, and how long a connection is held at most beyond it. */
const HELD_MS = { least: 10_500, more: 4_000 };

/** Connections between the parts that are cut, around a commit too, slow for a while, or held for longer than a lease. */
export function connectionWeather(links: Links, journal: Journal): Part {
  return {
    turn: (draw) => {
      const { what, gate, isDatabase } = draw.pick(links as [Links[number], ...Links]);
      const kind = draw.pick(['cut', 'cut', 'commit asked', 'commit answered', 'held', 'held', 'slow'] as const);
      if (kind === 'slow') {
        gate.delay(5 + draw.below(150));
        setTimeout(() => gate.delay(0), 200 + draw.below(1_000));
        noteWeather(journal, `${what}: connections slow for a while`);
      } else if (kind === 'held' && isDatabase) {
        gate.holdAt(draw.pick(HELD_AT), HELD_MS.least + draw.below(HELD_MS.more));
        noteWeather(journal, `${what}: transaction held for longer than a lease`);
      } else if (kind !== 'cut' && kind !== 'held' && isDatabase) {
        gate.cutAt('COMMIT', CUTS[kind]);
        noteWeather(journal, `${what}: connection cut ${CUT_AT[CUTS[kind]]}`);
      } else if (gate.cut() > 0) noteWeather(journal, `${what}: connections cut`);
      return 100 + draw.below(300);
    },
    calm: () => {
      for (const { gate } of links) gate.calm();
    },
  };
}
