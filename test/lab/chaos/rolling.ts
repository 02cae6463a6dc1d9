// Every part is restarted in order, one after the other, while free requests and payments go on: registries, sidecars,
// all-in-ones and the database behind them. A balancer in front of each pair sends new connections to those that are ready,
// as an orchestrator does; clients stay on their connections for as long as nobody tells them that they end.
import { Agent, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { startPostgres } from '../../postgres/server.ts';
import { startChain, USDC, type Chain } from '../../support/chain/chain.ts';
import { startFacilitator } from '../../support/chain/facilitator.ts';
import { createPayer, type Payer } from '../../support/chain/payer.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../../support/process.ts';
import { startUpstream } from '../../support/upstream.ts';
import { allInOneConfig, registryConfig, sidecarConfig } from './configs.ts';
import { startGate } from '../../support/gate.ts';
import { readPaid } from './paid.ts';
import { freePort } from '../../support/free-port.ts';
import { commandOutput, PAY_TO, PRICE, readCharges } from './world.ts';

export type RollingOptions = {
  /** How often everything is restarted. */
  readonly rounds: number;
  /** One replica of each kind at the same time, and only the first of each, instead of each replica by itself. */
  readonly short: boolean;
  /** Of load before the first restart, to compare with. */
  readonly calmMs: number;
};

export type Rolled = {
  readonly restarts: Readonly<Record<string, number>>;
  /** By what became of them: a status, or how it failed. */
  readonly free: ReadonlyMap<string, number>;
  readonly payments: { readonly atOnce: number; readonly later: number; readonly lost: readonly string[] };
  /** Milliseconds of a free request, before and during the restarts. */
  readonly p99: { readonly calm: number; readonly rolling: number };
  /** What moved, by the chain and by the ledger. */
  readonly moved: { readonly chain: bigint; readonly ledger: bigint };
};

const DRAIN_DELAY = '1s';
const LOOK_MS = 50;
const FREE_CLIENTS = 6;
const PACE_MS = 20;
const PAYERS = 2;
const FUNDS = 1_000_000_000n;
/** Until a payer that asks again has what it paid for. */
const PATIENCE_MS = 60_000;
const AGAIN_MS = 200;

type Kind = 'registry' | 'sidecar' | 'all-in-one';
type Replica = {
  readonly name: string;
  readonly kind: Kind;
  readonly port: number;
  readonly restart: () => Promise<void>;
};

export async function runRolling(
  { rounds, short, calmMs }: RollingOptions,
  say: (line: string) => void,
): Promise<Rolled> {
  const closing: (() => unknown)[] = [];
  try {
    const stage = await startStage(closing);
    const load = startLoad(stage, ['sidecar', 'all-in-one']);
    closing.push(load.stop);
    await load.flows();
    await setTimeout(calmMs);
    const calm = load.times.splice(0);
    const restarts: Record<string, number> = {};
    for (let round = 0; round < rounds; round++)
      for (const together of short ? stage.firsts : stage.all.map((each) => [each]))
        await Promise.all(
          together.map(async ({ name, restart }) => {
            const since = performance.now();
            await restart();
            restarts[name] = (restarts[name] ?? 0) + 1;
            say(`${name} was restarted in ${(performance.now() - since).toFixed(0)} ms`);
          }),
        );
    await load.flows();
    const payments = await load.stop();
    const charges = await stage.charges();
    const ledger = charges
      .filter(({ status }) => status === 'settled' || status === 'delivered')
      .reduce((sum, { amount_atomic: amount }) => sum + BigInt(amount), 0n);
    const paid = await readPaid(stage.chain, PAY_TO);
    return {
      restarts,
      free: load.free,
      payments,
      p99: { calm: percentile(calm), rolling: percentile(load.times) },
      moved: { chain: BigInt(paid.size) * PRICE, ledger },
    };
  } finally {
    for (const close of closing.toReversed()) await close();
  }
}

type Part = Pick<Replica, 'name' | 'restart'>;

type Stage = {
  readonly chain: Chain;
  readonly door: (kind: Kind) => number;
  readonly all: readonly Part[];
  readonly firsts: readonly (readonly Part[])[];
  readonly charges: () => ReturnType<typeof readCharges>;
};

async function startStage(closing: (() => unknown)[]): Promise<Stage> {
  const files = temporaryFolder();
  closing.push(files.remove);
  const chain = await startChain();
  closing.push(chain.stop);
  const database = await startPostgres();
  closing.push(database.close);
  const facilitator = await startFacilitator({ rpcUrl: chain.rpcUrl });
  closing.push(facilitator.close);
  const upstream = await startUpstream((req, res) => void req.resume().on('end', () => res.end('fine')));
  closing.push(upstream.close);
  const store = await database.createDatabase();
  const replicas: Replica[] = [];
  const ready = new Set<Replica>();
  const doors = new Map<Kind, number>();
  for (const kind of ['registry', 'sidecar', 'all-in-one'] as const) {
    const gate = await startGate(() => [...ready].filter((each) => each.kind === kind).map(({ port }) => port));
    closing.push(gate.close);
    doors.set(kind, gate.port);
  }
  const door = (kind: Kind): number => doors.get(kind) ?? 0;
  const common = {
    ...{ upstream: upstream.url, rpcUrl: chain.rpcUrl, drainDelay: DRAIN_DELAY },
    facilitator: Number(new URL(facilitator.url).port),
  };
  const start = async (kind: Kind, n: number, text: (port: number) => string): Promise<void> => {
    const port = await freePort();
    const name = `${kind} ${n}`;
    const file = files.write(`${kind}-${n}.yaml`, text(port));
    replicas.push(await startReplica({ name, kind, port, file }, ready, closing));
  };
  await Promise.all([1, 2].map((n) => start('registry', n, (port) => registryConfig({ port, store: `"${store}"` }))));
  await Promise.all(
    [1, 2].flatMap((n) => [
      start('sidecar', n, (port) =>
        sidecarConfig({
          ...{ ...common, port, registry: door('registry'), snapshot: `routes-${n}.json` },
          store: n === 1 ? `"${store}"` : undefined,
        }),
      ),
      start('all-in-one', n, (port) => allInOneConfig({ ...common, port, workers: 2, store: `"${store}"` })),
    ]),
  );
  const config = `${files.folder}/registry-1.yaml`;
  const token = await commandOutput(config, 'token');
  const databasePart = {
    name: 'database',
    restart: async () => {
      await database.stop('SIGINT');
      await database.start();
    },
  };
  return {
    ...{ chain, door },
    all: [...replicas.toSorted((a, b) => (a.name < b.name ? -1 : 1)), databasePart],
    firsts: [replicas.filter(({ name }) => name.endsWith(' 1')), [databasePart]],
    charges: () => readCharges(`http://127.0.0.1:${door('registry')}`, token),
  };
}

type Started = Omit<Replica, 'restart'> & { readonly file: string };

/** It is in `ready` for as long as it says so itself. */
async function startReplica(
  { name, kind, port, file }: Started,
  ready: Set<Replica>,
  closing: (() => unknown)[],
): Promise<Replica> {
  const listeners = kind === 'registry' ? ['registry', 'admin'] : ['proxy', 'admin'];
  const start = (): Promise<TollgateProcess> => startProcess({ args: ['serve', '-c', file], listeners });
  let running = await start();
  const over = new AbortController();
  const isReady = async (): Promise<boolean> => {
    try {
      const response = await fetch(`${running.url('admin')}/readyz`);
      await response.arrayBuffer();
      return response.ok;
    } catch {
      return false;
    }
  };
  const replica: Replica = {
    ...{ name, kind, port },
    restart: async () => {
      running.signal('SIGTERM');
      const code = await running.exited;
      if (code !== 0) throw new Error(`${name} ended with ${code}: ${running.stderr()}`);
      running = await start();
      await becomesReady();
    },
  };
  const becomesReady = async (): Promise<void> => {
    while (!ready.has(replica)) await setTimeout(LOOK_MS);
  };
  const look = async (): Promise<void> => {
    while (!over.signal.aborted) {
      if (await isReady()) ready.add(replica);
      else ready.delete(replica);
      await setTimeout(LOOK_MS);
    }
  };
  const looking = look();
  closing.push(async () => {
    over.abort();
    await looking;
    await running.kill();
  });
  await becomesReady();
  return replica;
}

type Load = {
  readonly free: ReadonlyMap<string, number>;
  readonly times: number[];
  /** Resolves when more of everything has been answered. */
  readonly flows: () => Promise<void>;
  readonly stop: () => Promise<Rolled['payments']>;
};

function startLoad({ chain, door }: Stage, kinds: readonly Kind[]): Load {
  const free = new Map<string, number>();
  const times: number[] = [];
  const lost: string[] = [];
  const counts = { free: 0, atOnce: 0, later: 0 };
  const over = new AbortController();

  const askFree = async (kind: Kind): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!over.signal.aborted) {
      const since = performance.now();
      const { outcome } = await ask(agent, door(kind), '/free');
      times.push(performance.now() - since);
      free.set(outcome, (free.get(outcome) ?? 0) + 1);
      counts.free++;
      await setTimeout(PACE_MS);
    }
    agent.destroy();
  };
  const pay = async (kind: Kind, payer: Payer): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let n = 0; !over.signal.aborted; n++) {
      const target = `/paid/${n}`;
      const quoted = await ask(agent, door(kind), target);
      if (quoted.required === undefined) {
        lost.push(`${kind}: no price but ${quoted.outcome}`);
        continue;
      }
      const credential = await sign(payer, quoted.required);
      const told: string[] = [];
      for (const until = performance.now() + PATIENCE_MS; ;) {
        const { outcome } = await ask(agent, door(kind), target, credential);
        told.push(outcome);
        if (outcome === '200' || performance.now() > until) break;
        await setTimeout(AGAIN_MS);
      }
      if (told.at(-1) !== '200') lost.push(`${kind}: ${told.join(', ')}`);
      else counts[told.length === 1 ? 'atOnce' : 'later']++;
    }
    agent.destroy();
  };
  const working = kinds.flatMap((kind) => [
    ...Array.from({ length: FREE_CLIENTS }, () => askFree(kind)),
    ...Array.from({ length: PAYERS }, async () => pay(kind, await createPayer(chain, FUNDS))),
  ]);
  return {
    free,
    times,
    flows: async () => {
      const { free: asked, atOnce, later } = counts;
      const paid = atOnce + later + lost.length;
      while (counts.free < asked + 100 || counts.atOnce + counts.later + lost.length < paid + 2 * PAYERS)
        await setTimeout(LOOK_MS);
    },
    stop: async () => {
      over.abort();
      await Promise.all(working);
      return { atOnce: counts.atOnce, later: counts.later, lost };
    },
  };
}

type Told = { readonly outcome: string; readonly required?: Accepted | undefined };
type Accepted = { readonly amount: string; readonly payTo: string };

function ask(agent: Agent, port: number, path: string, credential?: string): Promise<Told> {
  return new Promise((resolve) => {
    const headers = credential === undefined ? {} : { 'payment-signature': credential };
    request({ agent, port, host: '127.0.0.1', path, headers }, (response) => {
      response.resume();
      const { statusCode, headers: said } = response;
      const required = statusCode === 402 ? said['payment-required'] : undefined;
      response.on('error', () => resolve({ outcome: 'broken off' }));
      response.on('end', () => resolve({ outcome: String(statusCode), required: readRequired(required) }));
    })
      .on('error', (error) => resolve({ outcome: error.message }))
      .end();
  });
}

function readRequired(header: string | string[] | undefined): Accepted | undefined {
  if (typeof header !== 'string') return undefined;
  const { accepts } = JSON.parse(Buffer.from(header, 'base64').toString()) as { accepts: Accepted[] };
  return accepts[0];
}

async function sign(payer: Payer, accepted: Accepted): Promise<string> {
  const payload = await payer.authorize({ to: accepted.payTo, value: BigInt(accepted.amount), asset: USDC });
  return Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload })).toString('base64');
}

function percentile(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? NaN;
}
