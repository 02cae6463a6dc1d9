// How much of everything: what `npm run test:endurance` does, and the small version of it that runs with every test.

export type Plan = {
  readonly idle: number;
  readonly slow: number;
  readonly slowEveryMs: number;
  /** `proxy.timeouts.headers`. */
  readonly headersMs: number;
  readonly unpaid: { readonly warmUp: number; readonly count: number };
  /** Routes that are shown as pages, and what they may hold in memory as such. */
  readonly pages: { readonly routes: number; readonly heldMb: number };
  readonly junk: number;
  /** How often each bomb is thrown. */
  readonly bombs: number;
  readonly stall: { readonly rounds: number; readonly seconds: number; readonly perSecond: number };
  readonly registry: {
    readonly registrationsPerMinute: number;
    readonly routes: number;
    readonly matches: number;
    readonly streams: number;
    readonly streamsPerKey: number;
  };
  readonly freePerSecond: number;
  readonly freeSeconds: number;
  /** Bounds of what noise on a machine can reach, in a run that is not about them. */
  readonly bounds: {
    readonly residentMb: number;
    readonly growthMb: number;
    /** p99 of free requests while something else goes on. */
    readonly freeMs: number;
    /** Or so many times what it was before. */
    readonly freeTimes: number;
    /** p99 of free requests while a facilitator stalls, to that before. */
    readonly stallRatio: number;
    /** The server's CPU for one bomb. */
    readonly bombCpuMs: number;
    readonly settleSeconds: number;
    /** Heap in use above what was before the first scenario. */
    readonly heapMb: number;
  };
};

export const FULL: Plan = {
  idle: 10_000,
  slow: 2000,
  slowEveryMs: 1000,
  headersMs: 10_000,
  unpaid: { warmUp: 50_000, count: 200_000 },
  pages: { routes: 2500, heldMb: 5 },
  junk: 20_000,
  bombs: 50,
  stall: { rounds: 5, seconds: 6, perSecond: 100 },
  registry: { registrationsPerMinute: 2000, routes: 3500, matches: 5000, streams: 3000, streamsPerKey: 500 },
  freePerSecond: 200,
  freeSeconds: 10,
  bounds: {
    residentMb: 384,
    growthMb: 32,
    freeMs: 100,
    freeTimes: 5,
    stallRatio: 1.2,
    bombCpuMs: 10,
    settleSeconds: 60,
    heapMb: 48,
  },
};

/** Seconds, not minutes. Bounds that a busy machine could break are wide here: they are held by the long run. */
export const QUICK: Plan = {
  ...FULL,
  idle: 500,
  slow: 200,
  slowEveryMs: 200,
  headersMs: 1000,
  unpaid: { warmUp: 1000, count: 5000 },
  pages: { routes: 300, heldMb: 16 },
  junk: 360,
  bombs: 1,
  stall: { rounds: 1, seconds: 0.6, perSecond: 100 },
  registry: { registrationsPerMinute: 200, routes: 300, matches: 100, streams: 60, streamsPerKey: 20 },
  freePerSecond: 100,
  freeSeconds: 0.5,
  bounds: {
    ...FULL.bounds,
    growthMb: 128,
    freeMs: 2000,
    stallRatio: 100,
    bombCpuMs: 200,
    settleSeconds: 0,
    heapMb: 384,
  },
};
