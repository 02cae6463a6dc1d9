// What every scenario stands on: the upstream, the checkouts that are measured, how long and how often; and the one way
// in which contenders are measured: all started, each answer checked, a burst, then round by round in turn (A B C A B C),
// so that a drift of the machine meets all of them. Whatever was started here is stopped here.
import { meanRound, type Round, type Row, type Section, type Skipped } from './report.ts';
import { witnessOf, type Witness } from './check.ts';
import { NODE, LOAD_CORE, readMemoryMb, runToEnd, startServer, type Server } from './process.ts';
import { MAIN, tollgateName } from './names.ts';
import { startTollgate, type Tollgate, type TollgateOptions } from './tollgate.ts';
import path from 'node:path';

export type Checkout = {
  /** What is put behind the name of a row; empty for the working tree. */
  readonly suffix: string;
  readonly root: string;
};

export type Plan = {
  readonly rounds: number;
  /** How long each is loaded before the first round, in a round that does not count: V8 learns for tens of thousands of requests. */
  readonly warmSeconds: number;
  /** Rounds of scenarios that start a process for every measurement. */
  readonly slowRounds: number;
  readonly seconds: number;
  readonly burstSeconds: number;
  /** Routes that Tollgate is measured with, in ascending order. */
  readonly counts: readonly number[];
  readonly matcherCounts: readonly number[];
};

/** For scenarios that start a process for every measurement: a few rounds, and all of them count. */
export function slowly(stage: Stage): Stage {
  return { ...stage, plan: { ...stage.plan, rounds: stage.plan.slowRounds, warmSeconds: 0 } };
}

/** The number that most rows of the table are about where it is among those measured, else the most. */
export function mainCount({ counts }: Plan): number {
  return counts.includes(MAIN) ? MAIN : Math.max(...counts);
}

export type Stage = {
  readonly plan: Plan;
  /** The working tree first; beside others of Tollgate, peers are left out unless asked for. */
  readonly checkouts: readonly Checkout[];
  /** Whether the peer of this name takes part. */
  readonly wants: (peer: string) => boolean;
  readonly upstream: Server;
  readonly witness: Witness;
  /** For everything that is written. */
  readonly folder: string;
  readonly profiles: string | undefined;
  /** Called when everything is started and measuring begins. */
  readonly begun: () => void;
  readonly say: (line: string) => void;
};

/** `measure` says what went wrong, in words; such a contender is reported and not measured again. */
export type Contender = {
  readonly name: string;
  readonly check: () => Promise<void>;
  readonly measure: (seconds: number) => Promise<{ readonly round: Round; readonly faults: readonly string[] }>;
};

/** Contenders of one name as one, each measured in every round. */
export function together(contenders: readonly Contender[]): Contender[] {
  return [...Map.groupBy(contenders, ({ name }) => name)].map(([name, same]) => ({
    name,
    check: async () => {
      for (const { check } of same) await check();
    },
    measure: async (seconds) => {
      const measured = [];
      for (const { measure } of same) measured.push(await measure(seconds));
      const round = meanRound(measured.map((each) => each.round));
      return { round, faults: measured.flatMap(({ faults }) => faults) };
    },
  }));
}

export type Pool = {
  /** Keeps what was started until the scenario is over. */
  readonly keep: <S extends Server>(starting: Promise<S>) => Promise<S>;
};

export async function openUpstream(): Promise<{ readonly upstream: Server; readonly witness: Witness }> {
  const args = [path.join(import.meta.dirname, 'upstream.ts')];
  const upstream = await startServer({ name: 'upstream', file: NODE, args, core: LOAD_CORE }, ['upstream', 'control']);
  return { upstream, witness: witnessOf(upstream.port('control')) };
}

export async function withPool<T>(work: (pool: Pool) => Promise<T>): Promise<T> {
  const kept: Server[] = [];
  try {
    return await work({
      keep: async (starting) => {
        const server = await starting;
        kept.push(server);
        return server;
      },
    });
  } finally {
    await Promise.all(kept.map((server) => server.stop()));
  }
}

export type Entrant = { readonly name: string; readonly routes: number; readonly tollgate: Tollgate };

/** Tollgate with every number of routes, of every checkout; one after the other, so that starting disturbs nobody. */
export async function startTollgates(stage: Stage, pool: Pool, counts = stage.plan.counts): Promise<Entrant[]> {
  const entrants: Entrant[] = [];
  for (const routes of counts) {
    const label = tollgateName(routes);
    for (const { suffix, server } of await startCheckouts(stage, pool, { label, routes }))
      entrants.push({ name: label + suffix, routes, tollgate: server });
  }
  return entrants;
}

/** Tollgate of every checkout, with so many routes and `more` on; `label`: what it is called among others. */
export async function startCheckouts(
  { checkouts, folder, profiles, upstream, say }: Stage,
  pool: Pool,
  { label, ...more }: Pick<TollgateOptions, 'label' | 'routes' | 'decision' | 'more'>,
): Promise<readonly { readonly suffix: string; readonly server: Tollgate }[]> {
  const all: { suffix: string; server: Tollgate }[] = [];
  for (const { suffix, root } of checkouts) {
    say(`starting ${label}${suffix}`);
    const place = { label: label + suffix, root, upstreamPort: upstream.port('upstream'), folder, profiles };
    all.push({ suffix, server: await pool.keep(startTollgate({ ...place, ...more })) });
  }
  return all;
}

/** Number of processes of a row of Tollgate: two of the same differ by a few percent as long as they live. */
export const PROCESSES = 2;

/** Starts every checkout in `PROCESSES` processes. */
export async function startProcesses(
  ...args: Parameters<typeof startCheckouts>
): Promise<Awaited<ReturnType<typeof startCheckouts>>> {
  const all: Awaited<ReturnType<typeof startCheckouts>>[] = [];
  for (let started = 0; started < PROCESSES; started++) all.push(await startCheckouts(...args));
  return all.flat();
}

/** The same with paths that nobody asked for before. The suffix of another checkout stays at the end. */
export function freshName(name: string): string {
  return name.replace(/ routes/, ' routes, every path new');
}

/** [working tree, other] for every row of Tollgate's, where checkouts are compared. */
export function pairsOf({ checkouts }: Stage, rows: readonly Row[]): (readonly [string, string])[] {
  return checkouts
    .slice(1)
    .flatMap(({ suffix }) =>
      rows.flatMap(({ name }) => (name.endsWith(suffix) ? [[name.slice(0, -suffix.length), name] as const] : [])),
    );
}

/** What a scenario says of its section itself. */
export type About = Pick<Section, 'name' | 'title' | 'columns' | 'references' | 'remarks'>;

export type Measured = {
  readonly rows: readonly Row[];
  readonly skipped: readonly Skipped[];
  /** What had to be measured again, and why. */
  readonly repeated: readonly string[];
};

export async function measureInTurn(stage: Stage, contenders: readonly Contender[]): Promise<Measured> {
  const rounds = new Map<string, Round[]>();
  const faulty = new Map<string, string>();
  const repeated: string[] = [];
  stage.begun();
  for (const { name, check } of contenders) {
    try {
      await check();
      rounds.set(name, []);
    } catch (error) {
      faulty.set(name, error instanceof Error ? error.message : 'its answers could not be checked');
    }
  }
  const { warmSeconds } = stage.plan;
  for (let number = warmSeconds > 0 ? 0 : 1; number <= stage.plan.rounds; number++) {
    const seconds = number === 0 ? warmSeconds : stage.plan.seconds;
    for (const { name, measure } of contenders) {
      if (faulty.has(name)) continue;
      let { round, faults } = await measure(seconds);
      if (faults.length > 0) {
        // A machine that others use stalls now and then; who fails twice in a row failed by itself.
        const once = `${name}, round ${number}: ${faults.join('; ')}`;
        stage.say(`measured again: ${once}`);
        repeated.push(once);
        ({ round, faults } = await measure(seconds));
      }
      stage.say(`round ${number}/${stage.plan.rounds}  ${name}  ${summarize(round)}`);
      if (faults.length > 0) faulty.set(name, faults.join('; '));
      else if (number > 0) rounds.get(name)?.push(round);
    }
  }
  const rows = [...rounds].flatMap(([name, measured]) => (faulty.has(name) ? [] : [{ name, rounds: measured }]));
  return { rows, skipped: [...faulty].map(([name, fault]) => ({ name, reason: fault, fault: true })), repeated };
}

/** What most scenarios come to: measures `contenders` in turn and describes what was found. */
export async function measureSection(
  stage: Stage,
  contenders: readonly Contender[],
  about: About,
  skipped: readonly Skipped[] = [],
): Promise<Section> {
  const measured = await measureInTurn(stage, contenders);
  return describeSection(stage, { ...measured, skipped: [...skipped, ...measured.skipped] }, about);
}

/** Runs one of the bench's load programs on the load's core and returns what it printed. */
export async function runLoad<T>(program: string, job: object): Promise<T> {
  const args = [path.join(import.meta.dirname, program), JSON.stringify(job)];
  const result: T = JSON.parse(await runToEnd({ name: program, file: NODE, args, core: LOAD_CORE }));
  return result;
}

export function peakMb(pid: number): number {
  return readMemoryMb(pid).peak;
}

export function describeSection(stage: Stage, { rows, skipped, repeated }: Measured, rest: About): Section {
  const remarks = [...rest.remarks, ...repeated.map((what) => `Measured again: ${what}.`)];
  return { ...rest, remarks, rows, skipped, pairs: pairsOf(stage, rows) };
}

function summarize(round: Round): string {
  return Object.entries(round)
    .map(([key, value]) => `${key} ${value.toFixed(value < 10 ? 2 : 0)}`)
    .join('  ');
}
