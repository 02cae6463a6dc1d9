// Two registries and four sidecars over one PostgreSQL, with a real chain: what a run of chaos happens to. Two sidecars keep
// their charges in the database themselves, two in the ledger of whichever registry answers. Every connection between the
// parts goes through a gate; upstream and facilitator know each sidecar by its own.
import path from 'node:path';
import { startChain } from '../support/chain/chain.ts';
import { startFacilitator } from '../support/chain/facilitator.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { startPostgres, type PostgresServer } from '../postgres/server.ts';
import type { Draw } from '../simulation/scheduler.ts';
import { registryConfig, sidecarConfig } from './configs.ts';
import { startGate, type Gate } from './gate.ts';
import { noteWeather, type Journal } from './journal.ts';
import type { Plan } from './plan.ts';
import { startApi } from './upstream.ts';
import {
  commandOutput,
  createWeather,
  freePort,
  readCharges,
  watchSettles,
  type Door,
  type Weather,
  type World,
} from './world.ts';

const REGISTRIES = ['registry 1', 'registry 2'] as const;
const SIDECARS = [
  { who: 'sidecar 1', charges: 'database', workers: 1 },
  { who: 'sidecar 2', charges: 'database', workers: 2 },
  { who: 'sidecar 3', charges: 'registry', workers: 1 },
  { who: 'sidecar 4', charges: 'registry', workers: 1 },
] as const;
const DATABASE = 'database';
const NOWHERE: Door = { who: 'nowhere', url: 'http://127.0.0.1:1' };
const FAULTY = path.join(import.meta.dirname, 'faulty-program.ts');

/** All are there, or none is still on its way when this rejects. */
async function allOf<T>(starting: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(starting);
  return Promise.all(starting);
}

type Member = {
  readonly start: () => Promise<void>;
  readonly stop: (signal: 'SIGKILL' | 'SIGINT') => Promise<void>;
  /** Ends one of its workers, which it replaces. */
  readonly stopWorker?: () => void;
};
type Links = { readonly what: string; readonly gate: Gate }[];

export async function startFleet(plan: Plan, journal: Journal, fault: string | undefined): Promise<World> {
  const files = temporaryFolder();
  const closing: (() => unknown)[] = [files.remove];
  try {
    const chain = await startChain();
    closing.push(chain.stop);
    const database = await startPostgres();
    closing.push(database.close);
    const facilitator = await startFacilitator({ rpcUrl: chain.rpcUrl });
    closing.push(facilitator.close);
    const name = new URL(await database.createDatabase()).pathname;
    const links: Links = [];
    const gateTo = async (what: string, targets: () => readonly number[]): Promise<number> => {
      const gate = await startGate(targets);
      links.push({ what, gate });
      closing.push(gate.close);
      return gate.port;
    };
    const store = async (): Promise<string> => {
      const port = await gateTo(DATABASE, () => [database.port]);
      return `{ url: "postgres://tollgate@127.0.0.1:${port}${name}", timeout: 5s }`;
    };
    const calls = await startGate(() => [Number(new URL(facilitator.url).port)]);
    closing.push(calls.close);

    const members = new Map<string, Member>([[DATABASE, memberOf(database)]]);
    const registries = await Promise.all(REGISTRIES.map(freePort));
    const config = files.write('registry.yaml', registryConfig({ port: registries[0] ?? 0, store: await store() }));
    const other = files.write('registry-2.yaml', registryConfig({ port: registries[1] ?? 0, store: await store() }));
    // Both at once: one of them makes the schema.
    await allOf(
      [config, other].map(async (file, index) => {
        members.set(
          REGISTRIES[index] ?? '',
          await startMember({ config: file, listeners: ['registry', 'admin'], fault }, closing),
        );
      }),
    );
    const runs = new Map<number, number>();
    const doors = await allOf(
      SIDECARS.map(async ({ who, charges, workers }, index) => {
        const port = await freePort();
        const api = await startApi(plan.payments, journal, who, runs);
        closing.push(api.close);
        const text = sidecarConfig({
          ...{ port, workers, upstream: api.url, rpcUrl: chain.rpcUrl, snapshot: `routes-${index}.json` },
          registry: await gateTo('registry', () => registries),
          facilitator: await gateTo('facilitator', () => [calls.port]),
          store: charges === 'database' ? await store() : undefined,
        });
        const file = files.write(`sidecar-${index}.yaml`, text);
        members.set(who, await startMember({ config: file, listeners: ['proxy'], workers, fault }, closing));
        return { who, url: `http://127.0.0.1:${port}` };
      }),
    );
    watchSettles(facilitator, journal);
    const weather = createWeather(facilitator, calls, journal);
    const storm = createStorm(links, journal);
    const token = await commandOutput(config, 'token');
    let turn = 0;
    return {
      chain,
      door: () => doors[turn++ % doors.length] ?? NOWHERE,
      kill: (draw) => killOne(members, draw, journal),
      restless: (draw) => {
        weather.begin(draw);
        storm.begin(draw);
      },
      calm: async () => {
        await storm.calm();
        await weather.calm();
      },
      charges: () => readCharges(`http://127.0.0.1:${registries[0]}`, token),
      vouch: async () => undefined,
      stop: async () => {
        await storm.calm();
        await weather.calm();
        for (const close of closing.toReversed()) await close();
      },
    };
  } catch (error) {
    for (const close of closing.toReversed()) await close();
    throw error;
  }
}

type MemberOptions = {
  readonly config: string;
  readonly listeners: readonly string[];
  readonly workers?: number;
  readonly fault: string | undefined;
};

async function startMember(
  { config, listeners, workers = 1, fault }: MemberOptions,
  closing: (() => unknown)[],
): Promise<Member> {
  const launch = (): Promise<TollgateProcess> =>
    startProcess({
      args: ['serve', '-c', config],
      listeners,
      ...(fault === undefined ? {} : { program: FAULTY, env: { TOLLGATE_TEST_FAULT: fault } }),
    });
  let running = await launch();
  closing.push(() => running.kill());
  return {
    start: async () => void (running = await launch()),
    stop: () => running.kill(),
    ...(workers > 1 ? { stopWorker: () => killWorker(running) } : {}),
  };
}

function killWorker({ lines }: TollgateProcess): void {
  const last = lines.findLast(({ msg }) => msg === 'a worker is ready');
  if (last !== undefined) process.kill(Number(last['pid']), 'SIGKILL');
}

function memberOf({ start, stop }: PostgresServer): Member {
  return { start, stop };
}

/** One after the other, which one of several is drawn. */
const KILLED = ['sidecar', DATABASE, 'sidecar', 'registry'] as const;

async function killOne(members: ReadonlyMap<string, Member>, draw: Draw, journal: Journal): Promise<void> {
  const wanted = KILLED[journal.kills.length % KILLED.length] ?? DATABASE;
  const those = [...members].filter(([name]) => name.startsWith(wanted));
  const [who, member] = draw.pick(those as [[string, Member], ...[string, Member][]]);
  // A database also ends in order, as when it is brought up to date.
  const how = who === DATABASE && draw.chance(0.5) ? 'SIGINT' : 'SIGKILL';
  const at = performance.now();
  if (member.stopWorker !== undefined && draw.chance(0.5)) {
    member.stopWorker();
    journal.kills.push({ who, how: 'SIGKILL of a worker', at, backAt: at });
    return;
  }
  await member.stop(how);
  await member.start();
  journal.kills.push({ who, how, at, backAt: performance.now() });
}

/** Connections between the parts that are cut, around a commit too, or slow for a while. */
function createStorm(links: Links, journal: Journal): Weather {
  let raging = false;
  const step = (draw: Draw): void => {
    if (!raging) return;
    const { what, gate } = draw.pick(links as [Links[number], ...Links]);
    const kind = draw.pick(['cut', 'cut', 'commit asked', 'commit answered', 'slow'] as const);
    const isCommit = kind === 'commit asked' || kind === 'commit answered';
    if (kind === 'slow') {
      gate.delay(5 + draw.below(150));
      setTimeout(() => gate.delay(0), 200 + draw.below(1_000));
      noteWeather(journal, `${what}: connections slow for a while`);
    } else if (isCommit && what === DATABASE) {
      gate.cutAt('COMMIT', kind === 'commit asked' ? 'asked' : 'answered');
      noteWeather(
        journal,
        `${what}: connection cut ${kind === 'commit asked' ? 'before a commit arrives' : 'before the answer of a commit'}`,
      );
    } else if (gate.cut() > 0) noteWeather(journal, `${what}: connections cut`);
    setTimeout(step, 100 + draw.below(300), draw);
  };
  return {
    begin: (draw) => {
      raging = true;
      step(draw);
    },
    calm: async () => {
      raging = false;
      for (const { gate } of links) gate.delay(0);
    },
  };
}
