// Virtual time and the order of things: every await of the simulation parks here, and a seeded draw says which goes on.
// A process that crashed never goes on; what it had parked is gone. The same seed gives the same schedule, always.
export type Actor = { readonly name: string; alive: boolean };

type Parked = {
  readonly actor: Actor;
  readonly label: string;
  readonly at: number;
  /** Nobody waits for it to end a schedule: a timer, a reconciler's pause. */
  readonly background: boolean;
  readonly resume: () => void;
};

export type Draw = {
  /** From 0 up to, not including, `end`. */
  readonly below: (end: number) => number;
  readonly chance: (probability: number) => boolean;
  readonly pick: <T>(of: readonly [T, ...T[]]) => T;
};

export type Scheduler = {
  readonly now: () => number;
  readonly draw: Draw;
  /** Waits for its turn, `inMs` from now at the earliest. Never resolves for who has crashed by then. */
  readonly point: (actor: Actor, label: string, inMs?: number, background?: boolean) => Promise<void>;
  /** What `promise` gives, to an actor that may be gone by then. */
  readonly crossing: <T>(actor: Actor, label: string, promise: Promise<T>) => Promise<T>;
  /** Runs `run` once; what is returned cancels it. */
  readonly timer: (actor: Actor, label: string, inMs: number, run: () => void) => () => void;
  readonly crash: (actor: Actor) => void;
  readonly say: (line: string) => void;
  /** Until `done`, or until nothing can go on, or `steps` were made. Asks `crashes` before each step. */
  readonly run: (done: () => boolean, steps: number, crashes: (actor: Actor) => boolean) => Promise<'done' | 'stuck'>;
};

/** `turns`: of the event loop, in which everything that follows from one step happens. */
export function createScheduler(seed: number, start: number, trace: string[] | undefined, turns = 1): Scheduler {
  const draw = createDraw(seed);
  let now = start;
  let parked: Parked[] = [];
  const say = (line: string): void => void trace?.push(`${((now - start) / 1000).toFixed(3).padStart(9)}s  ${line}`);

  const park = (actor: Actor, label: string, inMs: number, background: boolean, resume: () => void): Parked => {
    const entry = { actor, label, at: now + inMs, background, resume };
    if (actor.alive) parked.push(entry);
    return entry;
  };

  const next = (): Parked | undefined => {
    if (parked.length === 0) return undefined;
    let ready = parked.filter(({ at }) => at <= now);
    if (ready.length === 0) {
      now = Math.min(...parked.map(({ at }) => at));
      ready = parked.filter(({ at }) => at <= now);
    }
    return ready[draw.below(ready.length)];
  };

  return {
    now: () => now,
    draw,
    say,
    point: (actor, label, inMs = 0, background = false) =>
      new Promise((resolve) => void park(actor, label, inMs, background, resolve)),
    crossing: (actor, label, promise) =>
      new Promise((resolve, reject) => {
        promise.then(
          (value) => void park(actor, label, 0, false, () => resolve(value)),
          (error: unknown) => void park(actor, label, 0, false, () => reject(error)),
        );
      }),
    timer: (actor, label, inMs, run) => {
      const entry = park(actor, label, inMs, true, run);
      return () => {
        parked = parked.filter((other) => other !== entry);
      };
    },
    crash: (actor) => {
      actor.alive = false;
      parked = parked.filter((other) => other.actor !== actor);
    },
    run: async (done, steps, crashes) => {
      for (let step = 0; step < steps; step++) {
        if (done() && parked.every(({ background }) => background)) return 'done';
        const entry = next();
        if (entry === undefined) return 'stuck';
        if (crashes(entry.actor)) continue;
        parked = parked.filter((other) => other !== entry);
        say(`${entry.actor.name}: ${entry.label}`);
        entry.resume();
        // Everything that follows from this step alone happens before the next one.
        for (let turn = 0; turn < turns; turn++) await settle();
      }
      return done() ? 'done' : 'stuck';
    },
  };
}

function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Small, fast and the same everywhere (a 32-bit mixer over a counter); good enough to choose with. */
export function createDraw(seed: number): Draw {
  let state = seed | 0;
  const unit = (): number => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = state ^ (state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
  const below = (end: number): number => Math.floor(unit() * end);
  return { below, chance: (probability) => unit() < probability, pick: (of) => of[below(of.length)] ?? of[0] };
}
