// Everything that a paid request needs, for real and on loopback: a chain, a facilitator, an upstream, and Tollgate as a
// process of its own in front of it, in the all-in-one shape.
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import type { RequestListener } from 'node:http';
import { programBuild } from './build.ts';
import { startChain, USDC, type Chain } from './chain/chain.ts';
import { startFacilitator, type FacilitatorOptions } from './chain/facilitator.ts';
import type { TestFacilitator } from './facilitator-server.ts';
import { createPayer, type Payer } from './chain/payer.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from './process.ts';
import { startUpstream, type Upstream } from './upstream.ts';

export const PAY_TO = '0x1111111111111111111111111111111111111111';

export type Accepted = {
  readonly amount: string;
  readonly payTo: string;
  readonly extra: { readonly external_ref: string };
};

export type PaidTollgate = {
  readonly chain: Chain;
  /** The first one. */
  readonly facilitator: TestFacilitator;
  readonly facilitators: readonly TestFacilitator[];
  readonly upstream: Upstream;
  readonly tollgate: () => TollgateProcess;
  readonly config: string;
  readonly payer: Payer;
  readonly url: (target: string) => string;
  /** Money that has arrived, in the smallest unit. */
  readonly earned: () => Promise<bigint>;
  /** The terms of a 402. */
  readonly quote: (target: string, method?: string) => Promise<Accepted>;
  /** A v2 credential for what a 402 asked. */
  readonly sign: (
    accepted: Accepted,
    by?: Payer,
    wanted?: { nonce?: string; value?: bigint; validBefore?: bigint },
  ) => Promise<string>;
  readonly pay: (target: string, credential: string, init?: RequestInit) => Promise<Response>;
  /** Charges as a dashboard sees them, newest first. */
  readonly charges: () => Promise<readonly ChargeSeen[]>;
  /** Another process with the same configuration, in a folder of its own. */
  readonly another: () => Promise<TollgateProcess>;
  /** Starts it again on the same store and ports of its own. */
  readonly restart: (env?: Readonly<Record<string, string>>) => Promise<void>;
  readonly cli: (...args: string[]) => Promise<string>;
  readonly stop: () => Promise<void>;
};

export type ChargeSeen = {
  readonly id: string;
  readonly status: string;
  readonly amount_atomic: string;
  readonly [field: string]: unknown;
};

export async function startPaidTollgate(options: {
  handle?: RequestListener;
  /** `METHOD PATTERN PRICE`, and `upfront` where it is to be paid to a receiver that settles first. */
  routes: readonly string[];
  more?: string;
  /** Further members of `proxy`. */
  proxy?: string;
  receiver?: string;
  /** `none`: nobody reads the chain. */
  rpcUrl?: string;
  /** How long a settlement may take. */
  settle?: string;
  /** Members of `registry`; by default a SQLite store. */
  registry?: string;
  /** Listeners beside those of the proxy and the registry. */
  listeners?: readonly string[];
  /** By default one. */
  facilitators?: readonly Omit<FacilitatorOptions, 'rpcUrl'>[];
}): Promise<PaidTollgate> {
  const files = temporaryFolder();
  const chain = await startChain();
  const facilitators: TestFacilitator[] = [];
  for (const wanted of options.facilitators ?? [{}])
    facilitators.push(await startFacilitator({ ...wanted, rpcUrl: chain.rpcUrl }));
  const [facilitator] = facilitators;
  if (facilitator === undefined) throw new Error('no facilitator');
  const timeouts = `timeouts: { verify: 3s, settle: ${options.settle ?? '3s'} }`;
  const asked = facilitators.map(({ url }) => `{ url: ${url}, ${timeouts} }`).join(', ');
  const upstream = await startUpstream(options.handle);
  const payer = await createPayer(chain);
  const routes = options.routes.map((rule) => {
    const [method, pattern, amount, receiver] = rule.split(' ');
    const to = receiver === undefined ? '' : `, receiver_config_id: ${receiver}`;
    return `  - { method: "${method}", route_pattern: "${pattern}", amount: "${amount}"${to} }`;
  });
  const receiver = (id: string, more = ''): string =>
    `  - { id: ${id}, network: base-sepolia, pay_to_address: "${PAY_TO}", facilitators: [${asked}], rpc_url: ${options.rpcUrl ?? chain.rpcUrl}${more} }`;
  const text = [
    `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url}, timeouts: { drain_delay: 0s, drain: 5s }${options.proxy === undefined ? '' : `, ${options.proxy}`} }`,
    `registry: { listen: 127.0.0.1:0, ${options.registry ?? 'store: sqlite:data/tollgate.db'} }`,
    'admin: { listen: 127.0.0.1:0 }',
    'x402: { v1: true }',
    'receivers:',
    receiver('default', options.receiver),
    ...(options.routes.some((rule) => rule.endsWith(' upfront'))
      ? [receiver('upfront', ', settle: before_forward')]
      : []),
    'routes:',
    ...routes,
    options.more ?? '',
  ].join('\n');
  const config = files.write('tollgate.yaml', text);
  const others: { readonly process: TollgateProcess; readonly remove: () => void }[] = [];
  const launch = (env: Readonly<Record<string, string>> = {}, file = config): Promise<TollgateProcess> =>
    startProcess({
      args: ['serve', '-c', file],
      env,
      listeners: ['proxy', 'registry', 'admin', ...(options.listeners ?? [])],
    });
  let tollgate = await launch();
  const root = path.resolve(import.meta.dirname, '../..');
  const cli = async (...args: string[]): Promise<string> => {
    const run = promisify(execFile);
    return (
      await run(path.join(root, 'node_modules/.bin/node'), [programBuild().main, ...args, '-c', config])
    ).stdout.trim();
  };
  const token = await cli('token');
  const url = (target: string): string => `${tollgate.url('proxy')}${target}`;
  return {
    chain,
    facilitator,
    facilitators,
    upstream,
    payer,
    config,
    url,
    cli,
    tollgate: () => tollgate,
    earned: () => chain.balanceOf(PAY_TO),
    quote: async (target, method = 'GET') => {
      const response = await fetch(url(target), { method });
      await response.arrayBuffer();
      if (response.status !== 402) throw new Error(`${target} answered ${response.status}, not 402`);
      const { accepts } = JSON.parse(
        Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString(),
      ) as { accepts: [Accepted] };
      return accepts[0];
    },
    sign: async (accepted, by = payer, { nonce, value, validBefore } = {}) => {
      const payload = await by.authorize({
        to: accepted.payTo,
        value: value ?? BigInt(accepted.amount),
        asset: USDC,
        ...(nonce === undefined ? {} : { nonce }),
        ...(validBefore === undefined ? {} : { validBefore }),
      });
      return Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload })).toString('base64');
    },
    pay: (target, credential, init = {}) =>
      fetch(url(target), {
        redirect: 'manual',
        ...init,
        headers: { ...(init.headers as Record<string, string>), 'payment-signature': credential },
      }),
    charges: async () => {
      const response = await fetch(`${tollgate.url('registry')}/v1/billing/charges?limit=200`, {
        headers: { authorization: `Bearer ${token}` },
      });
      const { data } = (await response.json()) as { data: ChargeSeen[] };
      return data;
    },
    another: async () => {
      const { write, remove } = temporaryFolder();
      const process = await launch({}, write('tollgate.yaml', text));
      others.push({ process, remove });
      return process;
    },
    restart: async (env) => {
      await tollgate.kill();
      tollgate = await launch(env);
    },
    stop: async () => {
      await tollgate.kill();
      for (const { process, remove } of others) {
        await process.kill();
        remove();
      }
      await upstream.close();
      await Promise.all(facilitators.map(({ close }) => close()));
      await chain.stop();
      files.remove();
    },
  };
}

/** Resolves when the process at `url` has seen what was sent to it, or left it, before: it came on the same loop. */
export async function caughtUp(url: string): Promise<void> {
  for (let asked = 0; asked < 3; asked++) await (await fetch(url, { headers: { connection: 'close' } })).arrayBuffer();
}

/** Resolves once `look` gives something true; fails loudly where that does not happen. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false>,
  withinMs = 30_000,
): Promise<T> {
  const end = Date.now() + withinMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (Date.now() > end) throw new Error(`did not come to pass: ${what}`);
    await new Promise((resolve) => {
      setTimeout(resolve, 25);
    });
  }
}
