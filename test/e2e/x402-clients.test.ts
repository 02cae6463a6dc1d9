// The x402 project's own end-to-end clients over local chains: as theirs, one client with every scheme registered asks an
// endpoint by GET and reads the receipt. A row passes if the answer is there, the receipt says success and names a
// transaction, and the money has arrived. The endpoints that are not taken stand in test/README.md with the reason.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import axios from 'axios';
import { wrapAxiosWithPayment } from '@x402/axios';
import { x402Client, x402HTTPClient } from '@x402/core/client';
import { toClientEvmSigner } from '@x402/evm';
import { BatchSettlementEvmScheme } from '@x402/evm/batch-settlement/client';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { UptoEvmScheme } from '@x402/evm/upto/client';
import { ExactEvmSchemeV1 } from '@x402/evm/v1';
import { wrapFetchWithPayment } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { UptoSvmScheme } from '@x402/svm/upto/client';
import { ExactSvmSchemeV1 } from '@x402/svm/v1';
import { createKeyPairSignerFromPrivateKeyBytes } from '@solana/kit';
import { createPublicClient, http } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepSecret } from '../support/canaries.ts';
import { CHAIN } from '../support/chain/chain.ts';
import { startPaidTollgate, type PaidTollgate } from '../support/paid-tollgate.ts';
import { startPaidSolana, type PaidSolana } from '../support/svm/paid-solana.ts';
import { keyOf } from '../support/svm/wire.ts';

const PRICE = 1000n;
/** What their server answers. */
const ANSWER = { message: 'Protected endpoint accessed successfully', timestamp: '2026-01-01T00:00:00.000Z' };

let evm: PaidTollgate;
let svm: PaidSolana;
let client: x402Client;

beforeAll(async () => {
  const handle = (_: unknown, res: { end: (body: string) => void }): void => res.end(JSON.stringify(ANSWER));
  [evm, svm] = await Promise.all([
    startPaidTollgate({
      routes: ['GET /exact/evm/eip3009 0.001', 'GET /exact/evm/eip3009/upfront 0.001 upfront'],
      handle,
    }),
    startPaidSolana({ routes: ['GET /exact/svm 0.001', 'GET /exact/svm/upfront 0.001 upfront'], handle }),
  ]);
  client = await createClient();
}, 60_000);
afterAll(() => Promise.all([evm?.stop(), svm?.stop()]));

/** As their client registers them, but for other families of chains. */
async function createClient(): Promise<x402Client> {
  const secret = generatePrivateKey();
  keepSecret('a private key', secret.slice(2));
  const account = privateKeyToAccount(secret);
  await evm.chain.mint(account.address, 1_000_000n);
  const { rpcUrl } = evm.chain;
  const signer = toClientEvmSigner(account, createPublicClient({ chain: CHAIN, transport: http(rpcUrl) }));
  const key = keyOf('x402 client');
  keepSecret('a private key', key.seed.toString('hex'));
  svm.chain.mint(key.address, 1_000_000n);
  const svmSigner = await createKeyPairSignerFromPrivateKeyBytes(new Uint8Array(key.seed));
  const svmOptions = { rpcUrl: svm.chain.rpcUrl };
  return x402Client.fromConfig({
    schemes: [
      { network: 'eip155:*', client: new ExactEvmScheme(signer, { rpcUrl }) },
      { network: 'eip155:*', client: new UptoEvmScheme(signer, { rpcUrl }) },
      { network: 'eip155:*', client: new BatchSettlementEvmScheme(signer) },
      { network: 'base-sepolia' as never, client: new ExactEvmSchemeV1(signer), x402Version: 1 },
      { network: 'solana:*', client: new ExactSvmScheme(svmSigner, svmOptions) },
      { network: 'solana:*', client: new UptoSvmScheme(svmSigner, svmOptions) },
      { network: 'solana-devnet' as never, client: new ExactSvmSchemeV1(svmSigner, svmOptions), x402Version: 1 },
    ],
    spendControls: false,
  });
}

type Result = { readonly status: number; readonly data: unknown; readonly header: (name: string) => string | null };

const CLIENTS = {
  fetch: async (url: string, version: 1 | 2): Promise<Result> => {
    const plain: typeof fetch = version === 2 ? fetch : async (...of) => withoutV2(await fetch(...of));
    const response = await wrapFetchWithPayment(plain, client)(url, { method: 'GET' });
    return { status: response.status, data: await response.json(), header: (name) => response.headers.get(name) };
  },
  axios: async (url: string, version: 1 | 2): Promise<Result> => {
    const plain = axios.create();
    if (version === 1)
      plain.interceptors.response.use(undefined, (error: { response?: { headers: Record<string, unknown> } }) => {
        delete error.response?.headers['payment-required'];
        throw error;
      });
    const response = await wrapAxiosWithPayment(plain, client as never).get<unknown>(url);
    const header = (name: string): string | null => {
      const value: unknown = response.headers[name.toLowerCase()];
      return typeof value === 'string' ? value : null;
    };
    return { status: response.status, data: response.data, header };
  },
};

/** As a server of version 1 answers: clients read the header of version 2 first. */
function withoutV2(response: Response): Response {
  const headers = new Headers(response.headers);
  headers.delete('payment-required');
  return new Response(response.body, { status: response.status, headers });
}

const TAKEN = [
  ['/exact/evm/eip3009', 'fetch', 2],
  ['/exact/evm/eip3009', 'axios', 2],
  ['/exact/evm/eip3009', 'fetch', 1],
  ['/exact/evm/eip3009', 'axios', 1],
  ['/exact/svm', 'fetch', 2],
  ['/exact/svm', 'axios', 2],
  ['/exact/evm/eip3009/upfront', 'fetch', 2],
  ['/exact/svm/upfront', 'fetch', 2],
] as const;

test.each(TAKEN)('behaviour: %s is paid by the %s client in version %i', async (endpoint, name, version) => {
  const paid = endpoint.startsWith('/exact/evm') ? evm : svm;
  const before = await paid.earned();
  const { status, data, header } = await CLIENTS[name](paid.url(endpoint), version);
  expect([status, data]).toEqual([200, ANSWER]);
  const receipt = new x402HTTPClient(client).getPaymentSettleResponse(header);
  expect(receipt).toMatchObject({ success: true, transaction: expect.stringMatching(/^(?:0x)?\w{64,88}$/) });
  expect((await paid.earned()) - before).toBe(PRICE);
  const settle = endpoint.endsWith('/upfront') ? 'before_forward' : 'before_response';
  expect((await paid.charges())[0]).toMatchObject({ settle, x402_version: version });
});

/** Of their catalogue; by the beginning of the path. */
const NOT_TAKEN = [
  ...['/exact/evm/permit2', '/upto/evm/', '/upto/svm', '/batch-settlement/evm/', '/auth-capture/evm/'],
  ...['aptos', 'avm', 'canton', 'cardano', 'casper', 'ccd', 'hedera', 'keeta', 'lnbtc', 'near', 'starknet'].map(family),
  ...['stellar', 'tvm', 'xahau', 'xrpl'].map(family),
];

function family(name: string): string {
  return `/exact/${name}`;
}

test('behaviour: every endpoint of the public clients that is not taken is listed with the reason', () => {
  const text = readFileSync(path.resolve(import.meta.dirname, '../README.md'), 'utf8');
  const missing = NOT_TAKEN.filter((endpoint) => !text.includes(`\`${endpoint}`));
  expect(missing).toEqual([]);
});
