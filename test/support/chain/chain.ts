// A real chain on loopback for tests and the demo: anvil under the id of Base Sepolia, with a test USDC planted at the
// address of USDC there, so that clients and facilitators run unmodified. Money is minted at will; nothing leaves this
// machine. Whoever starts a chain stops it.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import {
  createPublicClient,
  createTestClient,
  createWalletClient,
  defineChain,
  http,
  type Account,
  type Address,
  type Hex,
  type PublicClient,
  type TransactionReceipt,
} from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import artifacts from './contracts/artifacts.json' with { type: 'json' };

export const USDC: Address = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';
export const NETWORK = 'eip155:84532';
/** Ours, not the one of viem/chains: importing that reads a definition of every chain there is. */
export const CHAIN = defineChain({
  id: 84_532,
  name: 'Base Sepolia, on this machine',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: [] } },
});
export const USDC_ABI = artifacts.TestUsdc.abi;
export const MULTICALL_ABI = artifacts.MiniMulticall.abi;
export const MULTICALL: Address = '0xcA11bde05977b3631167028862bE2a173976CA11';
/** See contracts/TestWallet.sol. */
export const WALLET_FACTORY: Address = '0x6492000000000000000000000000000000000001';
export const WALLET_FACTORY_ABI = artifacts.TestWalletFactory.abi;
/** The accounts that anvil funds with ether, from its published test mnemonic. 0: facilitator, 1: mint, 2: second facilitator. */
const MNEMONIC = 'test test test test test test test test test test test junk';
const START_MS = 8_000;
const RECEIPT_MS = 15_000;

/** How the test token may misbehave: see contracts/TestUsdc.sol. */
export const MISCHIEF = { none: 0n, transferFirst: 1n, eventBetween: 2n, noTransfer: 3n } as const;

export type Chain = {
  readonly rpcUrl: string;
  /** A JSON-RPC call, for whatever has no name here. */
  readonly rpc: (method: string, params?: readonly unknown[]) => Promise<unknown>;
  readonly mint: (to: string, amount: bigint) => Promise<void>;
  readonly balanceOf: (address: string) => Promise<bigint>;
  /** Calls a function of the test token as the minter; resolves once it is mined. */
  readonly write: (functionName: string, args: readonly unknown[]) => Promise<Hex>;
  readonly read: (functionName: string, args: readonly unknown[]) => Promise<unknown>;
  readonly mine: (blocks?: number) => Promise<void>;
  /** Off: transactions wait for `mine`. */
  readonly automine: (on: boolean) => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** One sender at a time: see `createSender`. */
export function testAccount(index: number): Account {
  return mnemonicToAccount(MNEMONIC, { addressIndex: index });
}

/**
 * Sends the transactions of one account one after the other, each under the number that it has counted itself. The node's
 * own count falls back by one while it mines a block: then two transactions got one number, and the second was dropped
 * without a word.
 */
export function createSender(count: () => Promise<number>): <T>(send: (nonce: number) => Promise<T>) => Promise<T> {
  let next = 0;
  let last: Promise<unknown> = Promise.resolve();
  const sendNext = async <T>(send: (nonce: number) => Promise<T>): Promise<T> => {
    const nonce = Math.max(next, await count());
    const result = await send(nonce);
    next = nonce + 1;
    return result;
  };
  return (send) => {
    const sent = last.then(() => sendNext(send));
    last = sent.catch(() => undefined);
    return sent;
  };
}

export async function startChain(): Promise<Chain> {
  const anvil = await startAnvil();
  try {
    return await prepareChain(anvil);
  } catch (error) {
    await anvil.stop();
    throw error;
  }
}

async function prepareChain({ port, stop }: Anvil): Promise<Chain> {
  const rpcUrl = `http://127.0.0.1:${port}`;
  const common = { chain: CHAIN, transport: http(rpcUrl), pollingInterval: 20 };
  const reader = createPublicClient(common);
  const tester = createTestClient({ ...common, mode: 'anvil' });
  const minter = createWalletClient({ ...common, account: testAccount(1) });
  const abi = USDC_ABI;
  await tester.setCode({ address: USDC, bytecode: hex(artifacts.TestUsdc.runtime) });
  await tester.setCode({ address: MULTICALL, bytecode: hex(artifacts.MiniMulticall.runtime) });
  await tester.setCode({ address: WALLET_FACTORY, bytecode: hex(artifacts.TestWalletFactory.runtime) });

  const minting = testAccount(1).address;
  const send = createSender(() => reader.getTransactionCount({ address: minting, blockTag: 'pending' }));
  const write: Chain['write'] = async (functionName, args) => {
    const hash = await send((nonce) => minter.writeContract({ address: USDC, abi, functionName, args, nonce }));
    const receipt = await waitForReceipt(reader, hash, RECEIPT_MS);
    if (receipt.status !== 'success') throw new Error(`${functionName} reverted`);
    return hash;
  };
  const read: Chain['read'] = (functionName, args) => reader.readContract({ address: USDC, abi, functionName, args });

  let id = 0;
  return {
    rpcUrl,
    rpc: async (method, params = []) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params });
      const response = await fetch(rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
      const answer: unknown = await response.json();
      if (typeof answer !== 'object' || answer === null || !('result' in answer)) {
        throw new Error(`${method}: ${JSON.stringify(answer)}`);
      }
      return answer.result;
    },
    mint: async (to, amount) => void (await write('mint', [to, amount])),
    balanceOf: async (address) => BigInt(String(await read('balanceOf', [address]))),
    write,
    read,
    mine: (blocks = 1) => tester.mine({ blocks }),
    automine: (on) => tester.setAutomine(on),
    stop,
  };
}

type Anvil = { readonly port: string; readonly stop: () => Promise<void> };

/**
 * A shell holds anvil and ends it by its process id once our end of a pipe is closed: so it ends with us however we end,
 * also where a test runner kills the process that started it.
 */
const HOLD = '"$@" & cat > /dev/null; kill -9 $!';

/** Started again where it does not listen in time: on a machine with much else to do it sometimes never does. */
async function startAnvil(attempts = 3): Promise<Anvil> {
  const options = ['--chain-id', String(CHAIN.id), '--host', '127.0.0.1', '--port', '0'];
  const shell = spawn('sh', ['-c', HOLD, 'sh', anvilBinary(), ...options], { stdio: ['pipe', 'pipe', 'ignore'] });
  const exited = new Promise<void>((resolve) => {
    shell.once('exit', () => resolve());
    shell.once('error', () => resolve());
  });
  const stop = async (): Promise<void> => {
    shell.stdin.end();
    await exited;
  };
  const listening = Promise.withResolvers<string | undefined>();
  createInterface({ input: shell.stdout }).on('line', (line) => {
    const found = /^Listening on 127\.0\.0\.1:(\d+)/.exec(line)?.[1];
    if (found !== undefined) listening.resolve(found);
  });
  void exited.then(() => listening.resolve(undefined));
  const late = globalThis.setTimeout(() => listening.resolve(undefined), START_MS);
  const port = await listening.promise;
  clearTimeout(late);
  if (port !== undefined) return { port, stop };
  await stop();
  if (attempts > 1) return startAnvil(attempts - 1);
  throw new Error(`anvil did not listen within ${START_MS} ms, or could not be started`);
}

/**
 * The receipt of `hash`, asked for until it is there. viem's own waiting asks again only when a block comes, and on a
 * chain that mines one block per transaction the block may be seen before its receipt: then none ever comes.
 */
export async function waitForReceipt(
  client: Pick<PublicClient, 'getTransactionReceipt'>,
  hash: Hex,
  timeoutMs: number,
): Promise<TransactionReceipt> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const receipt = await client.getTransactionReceipt({ hash }).catch(() => undefined);
    if (receipt !== undefined) return receipt;
    if (performance.now() > end) throw new Error(`no receipt within ${timeoutMs} ms`);
    await setTimeout(10);
  }
}

/** The native binary itself: the wrapper that npm puts on the path would have to be ended together with its child. */
function anvilBinary(): string {
  const platform = process.platform;
  const name = `@foundry-rs/anvil-${platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`;
  const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`);
  return path.join(path.dirname(manifest), 'bin', platform === 'win32' ? 'anvil.exe' : 'anvil');
}

function hex(text: string): Hex {
  if (!/^0x[0-9a-f]*$/.test(text)) throw new Error('not hex');
  return `0x${text.slice(2)}`;
}
