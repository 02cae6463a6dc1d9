// A real Tollgate between a real chain, a facilitator with faults behind a gate, and an API: what a run of chaos happens to.
import { setTimeout } from 'node:timers/promises';
import { keccak256, numberToHex, pad, concat, type Hex } from 'viem';
import { startChain, USDC, type Chain } from '../../support/chain/chain.ts';
import { startFacilitator } from '../../support/chain/facilitator.ts';
import type { TestFacilitator } from '../../support/facilitator-server.ts';
import { freePort } from '../../support/free-port.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../../support/process.ts';
import type { Upstream } from '../../support/upstream.ts';
import type { Draw } from '../simulation/scheduler.ts';
import { startGate } from '../../support/gate.ts';
import { FRONT_SECRET, startFront } from './front.ts';
import type { Journal } from './journal.ts';
import type { Told } from './told.ts';
import { createWeather, facilitatorWeather } from './weather.ts';

export const PAY_TO: Hex = '0x2222222222222222222222222222222222222222';
export const PRICE = 100_000n;
/** Of a call to settle: longer than a settlement takes beside other load, shorter than a client's patience. */
export const SETTLE_MS = 2_500;
/** Of all calls to settle. */
const WRONG = 0.3;
const BLOCK_MS = 500;

export type World = {
  readonly chain: Chain;
  /** Payers that ask at the same time. */
  readonly payersAtOnce: number;
  /** Where the next request goes. */
  readonly door: () => Door;
  /** Ends a process with SIGKILL and starts it again on what is on the disk; resolves when it is there. */
  readonly kill: (draw: Draw) => Promise<void>;
  /** From now on nothing goes wrong any more. */
  readonly calm: () => Promise<void>;
  readonly restless: (draw: Draw) => void;
  /** What the registry answers, as JSON. */
  readonly ask: (method: string, path: string) => Promise<unknown>;
  /** Those of `status`, or all. */
  readonly charges: (status?: string) => Promise<readonly ListedCharge[]>;
  /** `charges reconcile ID --settled TRANSACTION | --fail REASON`: the word of an operator who has looked at the chain. */
  readonly vouch: (id: string, transaction: string | undefined) => Promise<void>;
  readonly stop: () => Promise<void>;
};

export type Door = { readonly who: string; readonly url: string };

export type ListedCharge = {
  readonly id: string;
  readonly status: string;
  readonly nonce: string;
  readonly amount_atomic: string;
  readonly x402_version: number;
  readonly delivered_at: string | null;
  readonly [field: string]: unknown;
};

/** Starts the API that is behind `who`. */
export type StartApi = (who: string) => Promise<Upstream>;

type WorldOptions = {
  readonly readsChain: boolean;
  readonly told?: Told | undefined;
  /** Payers come through a front that asks a decision listener. */
  readonly isAsked?: boolean;
  readonly workers?: number;
  /** The section `selling` of the configuration. */
  readonly selling?: string;
};

export async function startWorld(
  startApi: StartApi,
  journal: Journal,
  { readsChain, told, isAsked = false, workers = 1, selling = '' }: WorldOptions,
): Promise<World> {
  const files = temporaryFolder();
  const chain = await startChain();
  const facilitator = await startFacilitator({ rpcUrl: chain.rpcUrl });
  const gate = await startGate(() => [Number(new URL(facilitator.url).port)]);
  const api = await startApi('tollgate');
  const port = await freePort();
  const decision = await freePort();
  const front = isAsked ? await startFront({ decision, api: api.url, journal }) : undefined;
  const config = files.write(
    'tollgate.yaml',
    [
      `proxy: { listen: 127.0.0.1:${port}, upstream: ${api.url}, public_url: "http://127.0.0.1:${port}", timeouts: { drain_delay: 0s, drain: 5s } }`,
      'registry: { listen: 127.0.0.1:0, store: sqlite:data/tollgate.db }',
      'admin: { listen: 127.0.0.1:0 }',
      ...(workers > 1 ? [`workers: ${workers}`] : []),
      'x402: { v1: true }',
      'charges: { max_unsettled_per_payer: 10000 }',
      'receivers:',
      `  - { id: default, network: base-sepolia, pay_to_address: "${PAY_TO}", rpc_url: ${readsChain ? chain.rpcUrl : 'none'},`,
      `      facilitators: [{ url: "http://127.0.0.1:${gate.port}", timeouts: { verify: 2s, settle: ${SETTLE_MS}ms } }] }`,
      'routes:',
      '  - { method: "*", route_pattern: "/paid/*", amount: "0.10" }',
      selling,
      told?.config ?? '',
      isAsked
        ? `decision: { listen: 127.0.0.1:${decision}, dialect: haproxy, secret: ${FRONT_SECRET}, answer_within: 15s, timeouts: { drain_delay: 0s } }`
        : '',
    ].join('\n'),
  );
  const start = (): Promise<TollgateProcess> =>
    startProcess({ args: ['serve', '-c', config], listeners: ['proxy', 'registry', 'admin'] });
  let tollgate = await start();
  const token = await commandOutput(config, 'token');
  const weather = createWeather([
    facilitatorWeather(facilitator, gate, journal, WRONG),
    ...(told === undefined ? [] : [told.weather]),
  ]);
  const stopBlocks = makeBlocks(chain);
  watchSettles(facilitator, journal);

  return {
    chain,
    payersAtOnce: 16,
    door: () => ({ who: 'tollgate', url: front?.url ?? `http://127.0.0.1:${port}` }),
    kill: async () => {
      const at = performance.now();
      // In turn with the whole process.
      if (workers > 1 && journal.kills.length % 2 === 1) {
        sendSignal(workerOf(tollgate), 'SIGKILL');
        journal.kills.push({ who: 'tollgate', how: 'SIGKILL of a worker', at, backAt: at });
        return;
      }
      await tollgate.kill();
      tollgate = await start();
      journal.kills.push({ who: 'tollgate', how: 'SIGKILL', at, backAt: performance.now() });
    },
    calm: weather.calm,
    restless: weather.begin,
    ask: (method, path) => askRegistry(`${tollgate.url('registry')}${path}`, token, method),
    charges: (status) => readCharges(tollgate.url('registry'), token, status),
    vouch: async (id, transaction) => {
      const word = transaction === undefined ? ['--fail', 'never_settled'] : ['--settled', transaction];
      await commandOutput(config, 'charges', 'reconcile', id, ...word);
    },
    stop: async () => {
      await weather.calm();
      await stopBlocks();
      await tollgate.kill();
      await front?.close();
      await api.close();
      await gate.close();
      await facilitator.close();
      await chain.stop();
      files.remove();
    },
  };
}

/** The process of the worker that started last. */
export function workerOf({ lines, pid }: TollgateProcess): number {
  return Number(lines.findLast(({ msg }) => msg === 'a worker is ready')?.['pid'] ?? pid);
}

/** Signals a process that may be gone. */
export function sendSignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    return;
  }
}

export function watchSettles(facilitator: TestFacilitator, journal: Journal): void {
  void facilitator.next('settle').then(({ body }) => {
    const at = performance.now();
    journal.settles.push({ nonce: /"nonce":"(0x[0-9a-f]{64})"/.exec(JSON.stringify(body))?.[1] ?? '', at });
    watchSettles(facilitator, journal);
  });
}

/** Blocks come also while no payer pays: the chain's time is that of its last block, and proofs wait for it. */
export function makeBlocks(chain: Chain): () => Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  const mining = (async () => {
    while (!signal.aborted) {
      await chain.mine();
      await setTimeout(BLOCK_MS, undefined, { signal }).catch(() => undefined);
    }
  })();
  return () => {
    stop.abort();
    return mining;
  };
}

/** Gives `payer` an amount, without a transaction: the test token holds balances in its first slot. */
export async function fund(chain: Chain, payer: string, amount = PRICE): Promise<void> {
  const slot = keccak256(concat([pad(payer as Hex), pad('0x0')]));
  await chain.rpc('anvil_setStorageAt', [USDC, slot, pad(numberToHex(amount))]);
}

export async function askRegistry(url: string, token: string, method: string): Promise<unknown> {
  const response = await fetch(url, { method, headers: { authorization: `Bearer ${token}` } });
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${await response.text()}`);
  return response.json();
}

export async function readCharges(registry: string, token: string, status?: string): Promise<readonly ListedCharge[]> {
  const all: ListedCharge[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const query = new URLSearchParams({ limit: '200', ...(status && { status }), ...(cursor !== '' && { cursor }) });
    const response: Response = await fetch(`${registry}/v1/billing/charges?${query}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const page = (await response.json()) as { data: ListedCharge[]; next_cursor: string | null };
    all.push(...page.data);
    cursor = page.next_cursor;
  }
  return all;
}

export async function commandOutput(config: string, ...args: string[]): Promise<string> {
  const command = await startProcess({ args: [...args, '-c', config], listeners: [] });
  await command.exited;
  return command.lines
    .map(({ msg }) => msg)
    .join('\n')
    .trim();
}

export { USDC };
