// A receiver of several ways, for real and on loopback: an EVM chain and a Solana one, each with its facilitator, an upstream,
// and Tollgate as a process of its own in front of it.
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { programBuild } from './build.ts';
import { startChain, type Chain } from './chain/chain.ts';
import { startFacilitator } from './chain/facilitator.ts';
import { createPayer, type Payer } from './chain/payer.ts';
import type { TestFacilitator } from './facilitator-server.ts';
import { PAY_TO, type ChargeSeen } from './paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from './process.ts';
import { startSvm, type SvmChain } from './svm/chain.ts';
import { startSvmFacilitator, type SvmFacilitator } from './svm/facilitator.ts';
import { createSvmPayer, type SvmPayer } from './svm/payer.ts';
import { SHOP } from './svm/paid-solana.ts';
import { startUpstream, type Upstream } from './upstream.ts';

/** Those of further ways on the EVM chain, in order. */
export const WALLETS: readonly string[] = Array.from({ length: 6 }, (_, n) => `0x${String(n + 2).repeat(40)}`);

export type Accepted = {
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  readonly amount: string;
  readonly extra: { readonly external_ref: string; readonly paymentFlow?: string };
};

export type PaidWays = {
  readonly chains: { readonly evm: Chain; readonly svm: SvmChain };
  readonly facilitators: { readonly evm: TestFacilitator; readonly svm: SvmFacilitator };
  readonly payers: { readonly evm: Payer; readonly svm: SvmPayer };
  readonly upstream: Upstream;
  readonly tollgate: TollgateProcess;
  readonly config: string;
  readonly url: (target: string) => string;
  /** Money that has arrived on either chain, in the smallest unit; all tokens have the same. */
  readonly earned: () => Promise<{ readonly evm: bigint; readonly svm: bigint }>;
  /** Body and header of a 402. */
  readonly ask: (
    target: string,
    method?: string,
  ) => Promise<{ readonly body: Json; readonly accepts: readonly Accepted[] }>;
  readonly pay: (target: string, credential: unknown, init?: RequestInit) => Promise<Response>;
  readonly charges: () => Promise<readonly ChargeSeen[]>;
  readonly get: (target: string) => Promise<Json>;
  readonly cli: (...args: string[]) => Promise<{ readonly stdout: string; readonly stderr: string }>;
  readonly stop: () => Promise<void>;
};
type Json = Readonly<Record<string, unknown>>;

/** The first way is on the EVM chain, the second on Solana, the others are wallets on the EVM chain. */
export async function startPaidWays(routes: readonly string[]): Promise<PaidWays> {
  const files = temporaryFolder();
  const [evm, svm] = await Promise.all([startChain(), startSvm()]);
  const facilitators = {
    evm: await startFacilitator({ rpcUrl: evm.rpcUrl }),
    svm: await startSvmFacilitator(svm),
  };
  const payers = { evm: await createPayer(evm), svm: await createSvmPayer(svm) };
  svm.mint(SHOP, 0n);
  const upstream = await startUpstream((req, res) => {
    req.resume();
    res.end(`thing of ${req.url ?? ''}`);
  });
  const timeouts = 'timeouts: { verify: 3s, settle: 3s }';
  const onEvm = (payTo: string): string =>
    `      - { network: base-sepolia, pay_to_address: "${payTo}", rpc_url: ${evm.rpcUrl} }`;
  const config = files.write(
    'tollgate.yaml',
    [
      `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url}, timeouts: { drain_delay: 0s, drain: 5s } }`,
      'registry: { listen: 127.0.0.1:0, store: sqlite:data/tollgate.db }',
      'admin: { listen: 127.0.0.1:0 }',
      'x402: { v1: true }',
      'receivers:',
      '  - id: default',
      `    facilitators: [{ url: ${facilitators.evm.url}, ${timeouts} }]`,
      '    accepts:',
      onEvm(PAY_TO),
      `      - { network: solana-devnet, pay_to_address: "${SHOP}", facilitators: [{ url: ${facilitators.svm.url}, ${timeouts} }], rpc_url: ${svm.rpcUrl} }`,
      ...WALLETS.map(onEvm),
      'routes:',
      ...routes.map((rule) => {
        const [method, pattern, amount] = rule.split(' ');
        return `  - { method: "${method}", route_pattern: "${pattern}", amount: "${amount}" }`;
      }),
    ].join('\n'),
  );
  const tollgate = await startProcess({ args: ['serve', '-c', config], listeners: ['proxy', 'registry', 'admin'] });
  await tollgate.line(({ msg }) => msg === 'a way to pay is offered');
  const root = path.resolve(import.meta.dirname, '../..');
  const cli: PaidWays['cli'] = (...args) =>
    promisify(execFile)(path.join(root, 'node_modules/.bin/node'), [programBuild().main, ...args, '-c', config]);
  const token = (await cli('token')).stdout.trim();
  const url = (target: string): string => `${tollgate.url('proxy')}${target}`;
  const get: PaidWays['get'] = async (target) => {
    const response = await fetch(`${tollgate.url('registry')}${target}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    return (await response.json()) as Json;
  };
  return {
    chains: { evm, svm },
    ...{ facilitators, payers, upstream, tollgate, config, url, cli, get },
    earned: async () => {
      const wallets = await Promise.all([PAY_TO, ...WALLETS].map((wallet) => evm.balanceOf(wallet)));
      return { evm: wallets.reduce((sum, each) => sum + each, 0n), svm: svm.balanceOf(SHOP) ?? 0n };
    },
    ask: async (target, method = 'GET') => {
      const response = await fetch(url(target), { method });
      const body = (await response.json()) as Json;
      if (response.status !== 402) throw new Error(`${target} answered ${response.status}, not 402`);
      const { accepts } = JSON.parse(
        Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString(),
      ) as { accepts: readonly Accepted[] };
      return { body, accepts };
    },
    pay: (target, credential, init = {}) => {
      const header = Buffer.from(JSON.stringify(credential)).toString('base64');
      return fetch(url(target), { ...init, headers: { 'payment-signature': header } });
    },
    charges: async () => (await get('/v1/billing/charges?limit=200'))['data'] as ChargeSeen[],
    stop: async () => {
      await tollgate.kill();
      await upstream.close();
      await Promise.all([facilitators.evm.close(), facilitators.svm.close()]);
      await Promise.all([evm.stop(), svm.stop()]);
      files.remove();
    },
  };
}
