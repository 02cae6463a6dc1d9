// Everything that a paid request on Solana needs, for real and on loopback: a virtual machine, a facilitator, an upstream, and
// Tollgate as a process of its own in front of it.
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import type { RequestListener } from 'node:http';
import { programBuild } from '../build.ts';
import type { ChargeSeen } from '../paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../process.ts';
import { startUpstream, type Upstream } from '../upstream.ts';
import { startSvm, type SvmChain } from './chain.ts';
import { startSvmFacilitator, type SvmFacilitator } from './facilitator.ts';
import { createSvmPayer, type SvmPayer } from './payer.ts';
import { keyOf } from './wire.ts';

export const SHOP = keyOf('shop').address;

/** What a 402 asks, as clients read it. */
export type Asked = Parameters<SvmPayer['client']['createPaymentPayload']>[0];

export type PaidSolana = {
  readonly chain: SvmChain;
  /** The first one. */
  readonly facilitator: SvmFacilitator;
  readonly facilitators: readonly SvmFacilitator[];
  readonly upstream: Upstream;
  readonly payer: SvmPayer;
  readonly tollgate: () => TollgateProcess;
  readonly url: (target: string) => string;
  /** Money that has arrived, in the smallest unit. */
  readonly earned: () => bigint;
  /** What a 402 asks. */
  readonly ask: (target: string, method?: string) => Promise<Asked>;
  /** A credential of the reference client. */
  readonly signFor: (asked: Asked, by?: SvmPayer) => Promise<string>;
  /** The same for what a 402 asks. */
  readonly sign: (target: string, method?: string, by?: SvmPayer) => Promise<string>;
  readonly pay: (target: string, credential: string, init?: RequestInit) => Promise<Response>;
  readonly charges: () => Promise<readonly ChargeSeen[]>;
  /** Records a refund of a charge: the status, and the charge or what is wrong. */
  readonly refund: (chargeId: string, body: object) => Promise<{ readonly status: number; readonly said: ChargeSeen }>;
  /** Kills it and starts it again on the same store; resolves when the way is offered. */
  readonly restart: (env?: Readonly<Record<string, string>>) => Promise<void>;
  readonly stop: () => Promise<void>;
};

export async function startPaidSolana(options: {
  readonly handle?: RequestListener;
  /** `METHOD PATTERN PRICE`, and `upfront` where it is to be paid to a receiver that settles first. */
  readonly routes: readonly string[];
  /** The names of their keys; by default one. */
  readonly facilitators?: readonly string[];
  /** Further members of `proxy`. */
  readonly proxy?: string;
  /** Lines behind those of the routes. */
  readonly more?: string;
  /** Before Tollgate starts, which is not waited for to offer anything then. */
  readonly before?: (facilitators: readonly SvmFacilitator[]) => void;
}): Promise<PaidSolana> {
  const files = temporaryFolder();
  const chain = await startSvm();
  const facilitators: SvmFacilitator[] = [];
  for (const name of options.facilitators ?? ['facilitator']) facilitators.push(await startSvmFacilitator(chain, name));
  const [facilitator] = facilitators;
  if (facilitator === undefined) throw new Error('no facilitator');
  const timeouts = 'timeouts: { verify: 3s, settle: 3s }';
  const asked = facilitators.map(({ url }) => `{ url: ${url}, ${timeouts} }`).join(', ');
  const payer = await createSvmPayer(chain);
  chain.mint(SHOP, 0n);
  const upstream = await startUpstream(options.handle);
  const routes = options.routes.map((rule) => {
    const [method, pattern, amount, receiver] = rule.split(' ');
    const to = receiver === undefined ? '' : `, receiver_config_id: ${receiver}`;
    return `  - { method: "${method}", route_pattern: "${pattern}", amount: "${amount}"${to} }`;
  });
  const receiver = (id: string, more = ''): string =>
    `  - { id: ${id}, network: solana-devnet, pay_to_address: "${SHOP}", facilitators: [${asked}], rpc_url: ${chain.rpcUrl}${more} }`;
  const config = files.write(
    'tollgate.yaml',
    [
      `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url}, timeouts: { drain_delay: 0s, drain: 5s }${options.proxy === undefined ? '' : `, ${options.proxy}`} }`,
      'registry: { listen: 127.0.0.1:0, store: sqlite:data/tollgate.db }',
      'admin: { listen: 127.0.0.1:0 }',
      'receivers:',
      receiver('default'),
      ...(options.routes.some((rule) => rule.endsWith(' upfront'))
        ? [receiver('upfront', ', settle: before_forward')]
        : []),
      'routes:',
      ...routes,
      options.more ?? '',
    ].join('\n'),
  );
  const url = (target: string): string => `${tollgate.url('proxy')}${target}`;
  const start = (env: Readonly<Record<string, string>> = {}): Promise<TollgateProcess> =>
    startProcess({ args: ['serve', '-c', config], env, listeners: ['proxy', 'registry', 'admin'] });
  const launch = async (env?: Readonly<Record<string, string>>): Promise<TollgateProcess> => {
    const started = await start(env);
    await started.line(({ msg }) => msg === 'a way to pay is offered');
    return started;
  };
  options.before?.(facilitators);
  let tollgate = options.before === undefined ? await launch() : await start();
  const root = path.resolve(import.meta.dirname, '../../..');
  const { stdout } = await promisify(execFile)(path.join(root, 'node_modules/.bin/node'), [
    ...[programBuild().main, 'token', '-c', config],
  ]);
  const token = stdout.trim();
  const ask: PaidSolana['ask'] = async (target, method = 'GET') => {
    const response = await fetch(url(target), { method });
    await response.arrayBuffer();
    if (response.status !== 402) throw new Error(`${target} answered ${response.status}, not 402`);
    return JSON.parse(Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString()) as Asked;
  };
  const signFor: PaidSolana['signFor'] = async (wanted, by = payer) =>
    Buffer.from(JSON.stringify(await by.client.createPaymentPayload(wanted))).toString('base64');
  return {
    ...{ chain, facilitator, facilitators, upstream, payer, url, ask, signFor },
    tollgate: () => tollgate,
    earned: () => chain.balanceOf(SHOP) ?? 0n,
    sign: async (target, method, by) => signFor(await ask(target, method), by),
    pay: (target, credential, init = {}) =>
      fetch(url(target), { redirect: 'manual', ...init, headers: { 'payment-signature': credential } }),
    charges: async () => {
      const response = await fetch(`${tollgate.url('registry')}/v1/billing/charges?limit=200`, {
        headers: { authorization: `Bearer ${token}` },
      });
      const { data } = (await response.json()) as { data: ChargeSeen[] };
      return data;
    },
    refund: async (chargeId, body) => {
      const response = await fetch(`${tollgate.url('registry')}/v1/billing/charges/${chargeId}/refunds`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return { status: response.status, said: (await response.json()) as ChargeSeen };
    },
    restart: async (env) => {
      await tollgate.kill();
      tollgate = await launch(env);
    },
    stop: async () => {
      await tollgate.kill();
      await upstream.close();
      await Promise.all(facilitators.map(({ close }) => close()));
      await chain.stop();
      files.remove();
    },
  };
}
