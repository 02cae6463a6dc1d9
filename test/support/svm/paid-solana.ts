// Everything that a paid request on Solana needs, for real and on loopback: a virtual machine, a facilitator, an upstream, and
// Tollgate as a process of its own in front of it.
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import type { RequestListener } from 'node:http';
import type { ChargeSeen } from '../paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../process.ts';
import { startUpstream, type Upstream } from '../upstream.ts';
import { startSvm, type SvmChain } from './chain.ts';
import { startSvmFacilitator, type SvmFacilitator } from './facilitator.ts';
import { createSvmPayer, type SvmPayer } from './payer.ts';
import { keyOf } from './wire.ts';

export const SHOP = keyOf('shop').address;

export type PaidSolana = {
  readonly chain: SvmChain;
  readonly facilitator: SvmFacilitator;
  readonly upstream: Upstream;
  readonly payer: SvmPayer;
  readonly tollgate: () => TollgateProcess;
  readonly url: (target: string) => string;
  /** Money that has arrived, in the smallest unit. */
  readonly earned: () => bigint;
  /** A credential of the reference client for what a 402 asked. */
  readonly sign: (target: string, method?: string, by?: SvmPayer) => Promise<string>;
  readonly pay: (target: string, credential: string, init?: RequestInit) => Promise<Response>;
  readonly charges: () => Promise<readonly ChargeSeen[]>;
  /** Kills it and starts it again on the same store. */
  readonly restart: (env?: Readonly<Record<string, string>>) => Promise<void>;
  readonly stop: () => Promise<void>;
};

export async function startPaidSolana(options: {
  readonly handle?: RequestListener;
  readonly routes: readonly string[];
}): Promise<PaidSolana> {
  const files = temporaryFolder();
  const chain = await startSvm();
  const facilitator = await startSvmFacilitator(chain);
  const payer = await createSvmPayer(chain);
  chain.mint(SHOP, 0n);
  const upstream = await startUpstream(options.handle);
  const routes = options.routes.map((rule) => {
    const [method, pattern, amount] = rule.split(' ');
    return `  - { method: "${method}", route_pattern: "${pattern}", amount: "${amount}" }`;
  });
  const config = files.write(
    'tollgate.yaml',
    [
      `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url}, timeouts: { drain_delay: 0s, drain: 5s } }`,
      'registry: { listen: 127.0.0.1:0, store: sqlite:data/tollgate.db }',
      'admin: { listen: 127.0.0.1:0 }',
      'receivers:',
      `  - { id: default, network: solana-devnet, pay_to_address: "${SHOP}", facilitators: [{ url: ${facilitator.url}, timeouts: { verify: 3s, settle: 3s } }], rpc_url: ${chain.rpcUrl} }`,
      'routes:',
      ...routes,
    ].join('\n'),
  );
  const url = (target: string): string => `${tollgate.url('proxy')}${target}`;
  /** Started, and a facilitator has named a fee payer. */
  const launch = async (env: Readonly<Record<string, string>> = {}): Promise<TollgateProcess> => {
    const started = await startProcess({
      args: ['serve', '-c', config],
      env,
      listeners: ['proxy', 'registry', 'admin'],
    });
    await started.line(({ msg }) => msg === 'a way to pay is offered');
    return started;
  };
  let tollgate = await launch();
  const root = path.resolve(import.meta.dirname, '../../..');
  const { stdout } = await promisify(execFile)(path.join(root, 'node_modules/.bin/node'), [
    ...[path.join(root, 'src/main.ts'), 'token', '-c', config],
  ]);
  const token = stdout.trim();
  return {
    ...{ chain, facilitator, upstream, payer, url },
    tollgate: () => tollgate,
    earned: () => chain.balanceOf(SHOP) ?? 0n,
    sign: async (target, method = 'GET', by = payer) => {
      const response = await fetch(url(target), { method });
      await response.arrayBuffer();
      if (response.status !== 402) throw new Error(`${target} answered ${response.status}, not 402`);
      const header = response.headers.get('payment-required') ?? '';
      const required = JSON.parse(Buffer.from(header, 'base64').toString()) as Parameters<
        SvmPayer['client']['createPaymentPayload']
      >[0];
      return Buffer.from(JSON.stringify(await by.client.createPaymentPayload(required))).toString('base64');
    },
    pay: (target, credential, init = {}) =>
      fetch(url(target), { redirect: 'manual', ...init, headers: { 'payment-signature': credential } }),
    charges: async () => {
      const response = await fetch(`${tollgate.url('registry')}/v1/billing/charges?limit=200`, {
        headers: { authorization: `Bearer ${token}` },
      });
      const { data } = (await response.json()) as { data: ChargeSeen[] };
      return data;
    },
    restart: async (env) => {
      await tollgate.kill();
      tollgate = await launch(env);
    },
    stop: async () => {
      await tollgate.kill();
      await upstream.close();
      await facilitator.close();
      await chain.stop();
      files.remove();
    },
  };
}
