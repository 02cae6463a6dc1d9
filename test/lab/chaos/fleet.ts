// Registries and sidecars over one PostgreSQL, with a real chain: what a run of chaos happens to. Some sidecars keep their
// charges in the database themselves, the others in the ledger of whichever registry answers; a registry may have a proxy of its
// own. Every connection between the parts goes through a gate; upstream and facilitator know each proxy by its own.
import path from 'node:path';
import { startChain } from '../../support/chain/chain.ts';
import { startFacilitator } from '../../support/chain/facilitator.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../../support/process.ts';
import { startPostgres, type PostgresServer } from '../../postgres/server.ts';
import type { Draw } from '../simulation/scheduler.ts';
import { allInOneConfig, registryConfig, sidecarConfig } from './configs.ts';
import { startGate } from '../../support/gate.ts';
import { freePort } from '../../support/free-port.ts';
import type { Journal } from './journal.ts';
import type { Told } from './told.ts';
import { connectionWeather, createWeather, facilitatorWeather, type Links } from './weather.ts';
import {
  askRegistry,
  commandOutput,
  makeBlocks,
  readCharges,
  sendSignal,
  watchSettles,
  workerOf,
  type Door,
  type StartApi,
  type World,
} from './world.ts';

/** Parts of a fleet. */
export type FleetShape = {
  /** `workers`: those of its own proxy; left out: it has none. */
  readonly registries: readonly { readonly who: string; readonly workers?: number }[];
  readonly sidecars: readonly {
    readonly who: string;
    readonly charges: 'database' | 'registry';
    readonly workers: number;
  }[];
  /** Beginnings of the names of those that are killed in turn; `frozen`: one stands still for longer than a lease. */
  readonly killed: readonly [string, ...string[]];
  readonly frozen: readonly [string, ...string[]];
};

const DATABASE = 'database';

/** The fleet of payments. */
export const REGISTRIES_AND_SIDECARS: FleetShape = {
  registries: [{ who: 'registry 1' }, { who: 'registry 2' }],
  sidecars: [
    { who: 'sidecar 1', charges: 'database', workers: 1 },
    { who: 'sidecar 2', charges: 'database', workers: 2 },
    { who: 'sidecar 3', charges: 'registry', workers: 1 },
    { who: 'sidecar 4', charges: 'registry', workers: 1 },
  ],
  killed: ['sidecar', DATABASE, 'sidecar', 'registry', 'frozen', DATABASE, 'sidecar', 'registry'],
  frozen: ['sidecar', 'sidecar', 'sidecar', 'registry'],
};

/** The fleet of passes: three whole replicas, and two sidecars that draw over their ledger. */
export const REPLICAS: FleetShape = {
  registries: [
    { who: 'replica 1', workers: 1 },
    { who: 'replica 2', workers: 2 },
    { who: 'replica 3', workers: 1 },
  ],
  sidecars: [
    { who: 'sidecar 1', charges: 'registry', workers: 1 },
    { who: 'sidecar 2', charges: 'registry', workers: 1 },
  ],
  killed: ['sidecar', 'replica', 'sidecar', DATABASE, 'sidecar', 'replica', 'frozen', 'replica'],
  frozen: ['sidecar', 'replica'],
};

const FAULTY = path.join(import.meta.dirname, 'faulty-program.ts');
const NOWHERE: Door = { who: 'nowhere', url: 'http://127.0.0.1:1' };
/** Of all calls to settle: what is not known afterwards is looked for on the chain, a few times a second by each process. */
const WRONG = 0.1;

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
  /** Stops it, or one of its workers; what is returned lets it go on. */
  readonly freeze?: (whom: 'itself' | 'a worker') => () => void;
};

type FleetOptions = {
  readonly fault: string | undefined;
  readonly told?: Told | undefined;
  readonly shape?: FleetShape;
  /** The section `selling` of the configurations. */
  readonly selling?: string;
};

export async function startFleet(
  startApi: StartApi,
  journal: Journal,
  { fault, told, shape = REGISTRIES_AND_SIDECARS, selling = '' }: FleetOptions,
): Promise<World> {
  const files = temporaryFolder();
  const closing: (() => unknown)[] = [files.remove];
  try {
    const chain = await startChain();
    closing.push(chain.stop);
    // As many as on a network: a search for a payment goes through all of them.
    await chain.automine(false);
    closing.push(makeBlocks(chain));
    const database = await startPostgres();
    closing.push(database.close);
    const facilitator = await startFacilitator({ rpcUrl: chain.rpcUrl });
    closing.push(facilitator.close);
    const name = new URL(await database.createDatabase()).pathname;
    const links: Links[number][] = [];
    const gateTo = async (what: string, targets: () => readonly number[]): Promise<number> => {
      const gate = await startGate(targets);
      links.push({ what, gate, isDatabase: what === DATABASE });
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
    const registries = await Promise.all(shape.registries.map(freePort));
    // Whoever keeps charges sends events, one of them at a time.
    const webhooks = told === undefined ? {} : { webhooks: told.config };
    const doors: Door[] = [];
    /** What the proxy of `who` has. */
    const proxyOf = async (who: string, workers: number) => {
      const port = await freePort();
      const api = await startApi(who);
      closing.push(api.close);
      doors.push({ who, url: `http://127.0.0.1:${port}` });
      const facilitator = await gateTo('facilitator', () => [calls.port]);
      return { port, workers, selling, upstream: api.url, rpcUrl: chain.rpcUrl, facilitator };
    };
    // All at once: one of them makes the schema.
    const [config = ''] = await allOf(
      shape.registries.map(async ({ who, workers }, index) => {
        const port = registries[index] ?? 0;
        const place = await store();
        const text =
          workers === undefined
            ? registryConfig({ port, store: place, ...webhooks })
            : allInOneConfig({ ...(await proxyOf(who, workers)), registry: port, store: place });
        const file = files.write(`registry-${index}.yaml`, text);
        const listeners = workers === undefined ? ['registry', 'admin'] : ['registry', 'admin', 'proxy'];
        members.set(who, await startMember({ config: file, listeners, workers, fault }, closing));
        return file;
      }),
    );
    await allOf(
      shape.sidecars.map(async ({ who, charges, workers }, index) => {
        const text = sidecarConfig({
          ...(await proxyOf(who, workers)),
          snapshot: `routes-${index}.json`,
          registry: await gateTo('registry', () => registries),
          store: charges === 'database' ? await store() : undefined,
          ...webhooks,
        });
        const file = files.write(`sidecar-${index}.yaml`, text);
        members.set(who, await startMember({ config: file, listeners: ['proxy'], workers, fault }, closing));
      }),
    );
    watchSettles(facilitator, journal);
    const freezer = createFreezer(journal);
    const weather = createWeather([
      facilitatorWeather(facilitator, calls, journal, WRONG),
      connectionWeather(links, journal),
      freezer,
      ...(told === undefined ? [] : [told.weather]),
    ]);
    const token = await commandOutput(config, 'token');
    let turn = 0;
    let kills = 0;
    let asked = 0;
    const nextDoor = (): Door => doors[turn++ % doors.length] ?? NOWHERE;
    return {
      chain,
      payersAtOnce: 48,
      door: () => {
        const door = nextDoor();
        return freezer.isNoticed(door.who) ? nextDoor() : door;
      },
      kill: (draw) =>
        killOne(members, shape.killed[kills++ % shape.killed.length] ?? DATABASE, draw, { journal, freezer, shape }),
      restless: weather.begin,
      calm: weather.calm,
      ask: (method, path) =>
        askRegistry(`http://127.0.0.1:${registries[asked++ % registries.length]}${path}`, token, method),
      charges: (status) => readCharges(`http://127.0.0.1:${registries[0]}`, token, status),
      vouch: async () => undefined,
      stop: async () => {
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
  readonly workers?: number | undefined;
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
    start: async () => void (running = await again(launch)),
    stop: () => running.kill(),
    ...(workers > 1 ? { stopWorker: () => sendSignal(workerOf(running), 'SIGKILL') } : {}),
    freeze: (whom) => {
      const pid = whom === 'itself' || workers === 1 ? running.pid : workerOf(running);
      sendSignal(pid, 'SIGSTOP');
      return () => sendSignal(pid, 'SIGCONT');
    },
  };
}

const STARTS = 3;

/** Who watches over processes starts one again that does not come. */
async function again<T>(start: () => Promise<T>, left = STARTS): Promise<T> {
  return start().catch((error: unknown) => {
    if (left <= 1) throw error;
    return again(start, left - 1);
  });
}

function memberOf({ start, stop }: PostgresServer): Member {
  return { start, stop };
}

type Killing = { readonly journal: Journal; readonly freezer: Freezer; readonly shape: FleetShape };

/** Kills, or freezes, one of those that `turn` names. */
async function killOne(
  members: ReadonlyMap<string, Member>,
  turn: string,
  draw: Draw,
  { journal, freezer, shape }: Killing,
): Promise<void> {
  const wanted = turn === 'frozen' ? draw.pick(shape.frozen) : turn;
  const those = [...members].filter(([name]) => name.startsWith(wanted));
  const [who, member] = draw.pick(those as [[string, Member], ...[string, Member][]]);
  if (turn === 'frozen') return freezer.freeze(who, member, draw);
  // A database also ends in order, as when it is brought up to date.
  const how = who === DATABASE && draw.chance(0.5) ? 'SIGINT' : 'SIGKILL';
  const at = performance.now();
  if (member.stopWorker !== undefined && draw.chance(0.5)) {
    member.stopWorker();
    journal.kills.push({ who, how: 'SIGKILL of a worker', at, backAt: at });
    return;
  }
  await member.stop(how);
  freezer.thaw(who);
  await member.start();
  journal.kills.push({ who, how, at, backAt: performance.now() });
}

type Freezer = ReturnType<typeof createFreezer>;

/** Longer than a lease, and than it takes until somebody else has delivered what was in work. */
const FROZEN_MS = { least: 13_000, more: 3_000 };
/** Who spreads requests sees after a while that one does not answer. */
const NOTICED_MS = 1_000;

/** Stops processes for longer than a lease; then they go on as if nothing had been. */
function createFreezer(journal: Journal) {
  const frozen = new Map<string, { readonly since: number; readonly thaw: () => void }>();
  return {
    freeze: (who: string, member: Member, draw: Draw): void => {
      if (frozen.has(who)) return;
      const freeze = { who, at: performance.now(), backAt: Infinity };
      const goOn = member.freeze?.(draw.pick(['itself', 'a worker'] as const));
      const thaw = (): void => {
        clearTimeout(timer);
        frozen.delete(who);
        goOn?.();
        freeze.backAt = performance.now();
      };
      const timer = setTimeout(thaw, FROZEN_MS.least + draw.below(FROZEN_MS.more));
      frozen.set(who, { since: freeze.at, thaw });
      journal.freezes.push(freeze);
    },
    /** Of one that was killed meanwhile: its workers see that it is gone. */
    thaw: (who: string): void => frozen.get(who)?.thaw(),
    isNoticed: (who: string): boolean => performance.now() - (frozen.get(who)?.since ?? Infinity) > NOTICED_MS,
    turn: (): number => NOTICED_MS,
    calm: (): void => {
      for (const { thaw } of frozen.values()) thaw();
    },
  };
}
