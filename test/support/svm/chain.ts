// A real Solana virtual machine on loopback for tests and the demo: litesvm behind a small JSON-RPC server, under the name
// of devnet and with a test USDC at the address of USDC there, so that clients and facilitators run unmodified. litesvm
// executes; what a node does around it is here: blocks and their hashes, what is too old, what it drops without a word.
// Time is blocks: none comes unless a transaction or a test makes it. Whoever starts a chain stops it.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createHash, randomBytes } from 'node:crypto';
import {
  getCompiledTransactionMessageDecoder,
  getCompiledTransactionMessageEncoder,
  getTransactionDecoder,
} from '@solana/kit';
import { FailedTransactionMetadata, LiteSVM, type TransactionMetadata } from 'litesvm';
import { z } from 'zod';
import { findTokenAccount } from '../../../src/gateway/rails/svm/addresses.ts';
import {
  loadAddresses,
  readTokenBalances,
  showTransaction,
  type LoadedAddresses,
  type ReadAccount,
  type TokenBalance,
} from './shown-transaction.ts';
import { base58, PROGRAMS, unbase58 } from './wire.ts';

export const SVM_NETWORK = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';
export const SVM_USDC = '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU';
const GENESIS = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG';
/** Of so many blocks before its own a transaction may bear the hash. */
export const BLOCKHASH_BLOCKS = 150;
/** Blocks on top of one that is finalized. */
export const FINAL_BLOCKS = 32;
const MAX_BYTES = 1232;
/** Slots without a block, so that nobody takes one number for the other. */
const EMPTY_SLOTS = 1000;
const MAX_U64 = 2n ** 64n - 1n;

export type SvmChain = {
  readonly rpcUrl: string;
  /** Every call that was made, oldest first. */
  readonly calls: readonly Call[];
  /** Gives `owner` tokens, and the account that holds them. */
  readonly mint: (owner: string, amount: bigint, mint?: string) => void;
  /** Another token of six decimals. */
  readonly createMint: (mint: string, program: string) => void;
  /** Puts an account of these bytes there, whatever was there before. */
  readonly setAccount: (address: string, data: Buffer, program: string) => void;
  /** What `owner` has of the test token; undefined where there is no account. */
  readonly balanceOf: (owner: string, mint?: string) => bigint | undefined;
  /** Lamports, for fees. */
  readonly airdrop: (address: string) => void;
  readonly mine: (blocks?: number) => void;
  /** Off: transactions wait for `mine`, and are dropped where they are too old by then. */
  readonly automine: (on: boolean) => void;
  readonly height: () => number;
  /** Puts an answer of one's own in place of the next `times` of `method`. */
  readonly answer: (method: string, answer: Answer, times?: number) => void;
  /** A JSON-RPC call, for whatever has no name here. */
  readonly rpc: (method: string, params?: readonly unknown[]) => unknown;
  readonly stop: () => Promise<void>;
};

export type Call = { readonly method: string; readonly params: readonly unknown[] };
/** A result, an error of JSON-RPC, or no answer at all. */
export type Answer = { readonly result: unknown } | { readonly error: { code: number; message: string } } | 'drop';

type Landed = {
  readonly signature: string;
  readonly bytes: Buffer;
  readonly height: number;
  readonly time: number;
  /** Those of the message, then those of its look-up tables. */
  readonly accounts: readonly string[];
  readonly loaded: LoadedAddresses;
  readonly message: ReturnType<ReturnType<typeof getCompiledTransactionMessageDecoder>['decode']>;
  readonly signatures: readonly string[];
  readonly err: string | null;
  readonly ran: TransactionMetadata | undefined;
  readonly before: readonly TokenBalance[];
  readonly after: readonly TokenBalance[];
  readonly version: 'legacy' | 0;
};
type Sent = Pick<Landed, 'signature' | 'signatures' | 'bytes' | 'message' | 'version'> & {
  readonly transaction: ReturnType<ReturnType<typeof getTransactionDecoder>['decode']>;
  readonly blockhash: string;
  readonly messageHash: string;
};

const requestSchema = z.object({ id: z.unknown(), method: z.string(), params: z.array(z.unknown()).default([]) });

class RpcError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** `now`: its clock, in milliseconds. */
export async function startSvm(now: () => number = Date.now): Promise<SvmChain> {
  const node = createNode(now);
  const calls: Call[] = [];
  const answers = new Map<string, { readonly answer: Answer; times: number }[]>();
  const takeAnswer = (method: string): Answer | undefined => {
    const [first] = answers.get(method) ?? [];
    if (first === undefined) return undefined;
    if (--first.times <= 0) answers.get(method)?.shift();
    return first.answer;
  };

  const handle = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const { id, method, params } = requestSchema.parse(JSON.parse(Buffer.concat(chunks).toString()));
    calls.push({ method, params });
    const planned = takeAnswer(method);
    if (planned === 'drop') return void req.socket.destroy();
    const body = JSON.stringify({ jsonrpc: '2.0', id, ...(planned ?? perform(node, method, params)) });
    res.writeHead(200, { 'content-type': 'application/json' });
    res.end(body);
  };
  const server = createServer((req, res) => {
    handle(req, res).catch(() => req.socket.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    rpcUrl: `http://127.0.0.1:${port}`,
    calls,
    mint: node.mint,
    createMint: node.createMint,
    setAccount: node.setAccount,
    balanceOf: node.balanceOf,
    airdrop: node.airdrop,
    mine: node.mine,
    automine: node.automine,
    height: node.height,
    answer: (method, answer, times = 1) => {
      const queue = answers.get(method) ?? [];
      answers.set(method, queue);
      queue.push({ answer, times });
    },
    rpc: (method, params = []) => {
      const answer = perform(node, method, params);
      if ('error' in answer) throw new Error(answer.error.message);
      return answer.result;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

function perform(node: Node, method: string, params: readonly unknown[]): Exclude<Answer, 'drop'> {
  const call = node.methods[method];
  if (call === undefined) return { error: { code: -32_601, message: `Method not found: ${method}` } };
  try {
    return { result: call(...params) };
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    return { error: { code: error.code, message: error.message } };
  }
}

type Node = ReturnType<typeof createNode>;
type Options = {
  readonly commitment?: string;
  readonly encoding?: string;
  readonly limit?: number;
  readonly before?: string;
  readonly until?: string;
  readonly minContextSlot?: number;
  readonly sigVerify?: boolean;
  readonly replaceRecentBlockhash?: boolean;
  readonly skipPreflight?: boolean;
};

function createNode(now: () => number) {
  // Blockhashes are ours: litesvm knows only the latest one.
  const svm = new LiteSVM().withBlockhashCheck(false);
  type Address = Parameters<LiteSVM['getAccount']>[0];
  const at = (text: string): Address => text as Address;
  let blocks: { readonly hash: string; readonly time: number }[] = [];
  let mining = true;
  let waiting: Sent[] = [];
  const landed: Landed[] = [];
  const hashes = new Set<string>();

  const height = (): number => blocks.length - 1;
  const heightAt = (commitment = 'finalized'): number =>
    commitment === 'finalized' ? Math.max(0, height() - FINAL_BLOCKS) : height();
  const context = () => ({ slot: height() + EMPTY_SLOTS });
  const isYoung = (blockhash: string): boolean =>
    blocks.slice(-BLOCKHASH_BLOCKS - 1).some(({ hash }) => hash === blockhash);
  const addBlock = (): void => {
    blocks.push({ hash: base58(randomBytes(32)), time: Math.floor(now() / 1000) });
  };

  const execute = (sent: Sent): void => {
    // What can pay no fee is in no block.
    if (!isYoung(sent.blockhash) || hashes.has(sent.messageHash)) return;
    const { transaction, messageHash, blockhash: _blockhash, ...shown } = sent;
    const loaded = loadAddresses(sent.message, readAccount);
    const accounts = [...sent.message.staticAccounts, ...loaded.writable, ...loaded.readonly];
    const before = readTokenBalances(accounts, readAccount);
    const end = svm.sendTransaction(transaction);
    const isFailed = end instanceof FailedTransactionMetadata;
    const err = isFailed ? end.toString() : null;
    if (err?.includes('SignatureFailure') || err?.includes('AccountNotFound')) return;
    hashes.add(messageHash);
    const after = readTokenBalances(accounts, readAccount);
    const ran = isFailed ? undefined : end;
    const time = blocks.at(-1)?.time ?? 0;
    landed.push({ ...shown, ...{ accounts, loaded, before, after, ran, err, time }, height: height() });
  };
  const mine = (count = 1): void => {
    for (let mined = 0; mined < count; mined++) {
      addBlock();
      const due = waiting;
      waiting = [];
      for (const sent of due) execute(sent);
    }
  };

  const readAccount: ReadAccount = (address) => {
    const account = svm.getAccount(at(address));
    return account.exists ? { data: Buffer.from(account.data), program: account.programAddress } : undefined;
  };
  const setAccount = (address: string, data: Buffer, owner: string): void => {
    svm.setAccount({
      address: at(address),
      data: new Uint8Array(data),
      executable: false,
      lamports: svm.minimumBalanceForRentExemption(BigInt(data.length)) as never,
      programAddress: at(owner),
      space: BigInt(data.length),
    });
  };
  const tokenAccount = (owner: string, mint: string): string => {
    const account = findTokenAccount(owner, mint);
    if (account === undefined) throw new Error(`not an address: ${owner}`);
    return account;
  };
  const balanceAt = (account: string): bigint | undefined => {
    const found = svm.getAccount(at(account));
    return found.exists ? Buffer.from(found.data).readBigUInt64LE(64) : undefined;
  };
  const balanceOf = (owner: string, mint = SVM_USDC): bigint | undefined => balanceAt(tokenAccount(owner, mint));

  const createMint = (mint: string, program: string): void => {
    // Supply at 36, decimals at 44, initialized at 45.
    const data = Buffer.alloc(82);
    data.writeBigUInt64LE(MAX_U64 / 2n, 36);
    data.writeUInt8(6, 44);
    data.writeUInt8(1, 45);
    setAccount(mint, data, program);
  };

  addBlock();
  createMint(SVM_USDC, PROGRAMS.token);

  const found = (signature: string, commitment?: string): Landed | undefined =>
    landed.find((one) => one.signature === signature && one.height <= heightAt(commitment));

  const methods: Readonly<Record<string, (...params: never[]) => unknown>> = {
    getVersion: () => ({ 'solana-core': '2.0.0', 'feature-set': 0 }),
    getHealth: () => 'ok',
    getGenesisHash: () => GENESIS,
    getSlot: ({ commitment }: Options = {}) => heightAt(commitment) + EMPTY_SLOTS,
    getEpochInfo: ({ commitment }: Options = {}) => ({
      absoluteSlot: heightAt(commitment) + EMPTY_SLOTS,
      blockHeight: heightAt(commitment),
      epoch: 0,
      slotIndex: 0,
      slotsInEpoch: 432_000,
    }),
    getFirstAvailableBlock: () => 0,
    getBlockTime: (slot: number) => {
      const block = blocks[slot - EMPTY_SLOTS];
      if (block === undefined) throw new RpcError(-32_009, `Slot ${slot} was skipped, or missing in long-term storage`);
      return block.time;
    },
    getBlockHeight: ({ commitment }: Options = {}) => heightAt(commitment),
    getLatestBlockhash: ({ commitment }: Options = {}) => {
      const height = heightAt(commitment);
      const lastValidBlockHeight = height + BLOCKHASH_BLOCKS;
      return { context: context(), value: { blockhash: blocks[height]?.hash, lastValidBlockHeight } };
    },
    isBlockhashValid: (blockhash: string) => ({ context: context(), value: isYoung(blockhash) }),
    getAccountInfo: (address: string) => {
      const account = svm.getAccount(at(address));
      if (!account.exists) return { context: context(), value: null };
      const { data, executable, lamports, programAddress: owner } = account;
      const value = {
        data: [Buffer.from(data).toString('base64'), 'base64'],
        executable,
        lamports: Number(lamports),
        owner,
        rentEpoch: 0,
        space: data.length,
      };
      return { context: context(), value };
    },
    getTokenAccountBalance: (account: string) => {
      const amount = balanceAt(account);
      if (amount === undefined) throw new RpcError(-32_602, 'Invalid param: could not find account');
      const uiAmount = Number(amount) / 1e6;
      return {
        context: context(),
        value: { amount: String(amount), decimals: 6, uiAmount, uiAmountString: String(uiAmount) },
      };
    },
    simulateTransaction: (base64: string, { sigVerify = false, replaceRecentBlockhash = false }: Options = {}) => {
      const { transaction, blockhash, messageHash } = read(base64);
      const answer = (err: string | null, logs: readonly string[] = []) => ({
        context: context(),
        value: { err, logs, accounts: null, unitsConsumed: 0, returnData: null, innerInstructions: null },
      });
      if (!replaceRecentBlockhash && !isYoung(blockhash)) return answer('BlockhashNotFound');
      if (hashes.has(messageHash)) return answer('AlreadyProcessed');
      svm.withSigverify(sigVerify);
      try {
        const end = svm.simulateTransaction(transaction);
        if (end instanceof FailedTransactionMetadata) return answer(end.toString(), end.meta().logs());
        return answer(null, end.meta().logs());
      } finally {
        svm.withSigverify(true);
      }
    },
    sendTransaction: (base64: string, { skipPreflight = false }: Options = {}) => {
      const sent = read(base64);
      if (!skipPreflight) {
        const { value } = simulate(base64);
        if (value.err !== null) throw new RpcError(-32_002, `Transaction simulation failed: ${value.err}`);
      }
      waiting.push(sent);
      if (mining) mine();
      return sent.signature;
    },
    getSignatureStatuses: (signatures: readonly string[]) => ({
      context: context(),
      value: signatures.map((signature) => {
        const one = found(signature, 'processed');
        if (one === undefined) return null;
        const isFinal = one.height <= heightAt('finalized');
        return {
          slot: one.height + EMPTY_SLOTS,
          confirmations: isFinal ? null : height() - one.height,
          err: one.err,
          status: one.err === null ? { Ok: null } : { Err: one.err },
          confirmationStatus: isFinal ? 'finalized' : 'confirmed',
        };
      }),
    }),
    getSignaturesForAddress: (
      address: string,
      { limit = 1000, before, until, commitment, minContextSlot = 0 }: Options = {},
    ) => {
      if (heightAt(commitment) + EMPTY_SLOTS < minContextSlot)
        throw new RpcError(-32_016, 'Minimum context slot has not been reached');
      if (before !== undefined && found(before, commitment) === undefined) return [];

      const newest = landed
        .filter((one) => one.accounts.includes(address) && one.height <= heightAt(commitment))
        .toReversed();
      const from = before === undefined ? 0 : newest.findIndex(({ signature }) => signature === before) + 1;
      const to = until === undefined ? -1 : newest.findIndex(({ signature }) => signature === until);
      return newest
        .slice(from, to < 0 ? undefined : to)
        .slice(0, limit)
        .map((one) => ({
          signature: one.signature,
          slot: one.height + EMPTY_SLOTS,
          err: one.err,
          memo: null,
          blockTime: one.time,
          confirmationStatus: one.height <= heightAt('finalized') ? 'finalized' : 'confirmed',
        }));
    },
    getTransaction: (signature: string, { commitment, encoding = 'json' }: Options = {}) => {
      const one = found(signature, commitment);
      if (one === undefined) return null;
      const { height, time: blockTime, version } = one;
      return { slot: height + EMPTY_SLOTS, blockTime, ...showTransaction(one, encoding), version };
    },
  };
  const simulate = methods['simulateTransaction'] as unknown as (
    base64: string,
    options?: Options,
  ) => {
    value: { err: string | null };
  };

  return {
    methods: methods as Readonly<Record<string, (...params: unknown[]) => unknown>>,
    height,
    mine,
    balanceOf,
    createMint,
    setAccount,
    automine: (on: boolean) => {
      mining = on;
    },
    mint: (owner: string, amount: bigint, mint = SVM_USDC) => {
      // Mint at 0, owner at 32, amount at 64, initialized at 108.
      const data = Buffer.alloc(165);
      unbase58(mint).copy(data, 0);
      unbase58(owner).copy(data, 32);
      data.writeBigUInt64LE((balanceOf(owner, mint) ?? 0n) + amount, 64);
      data.writeUInt8(1, 108);
      setAccount(tokenAccount(owner, mint), data, PROGRAMS.token);
    },
    airdrop: (address: string) => void svm.airdrop(at(address), 1_000_000_000n as never),
  };
}

/** What a node reads, and nothing that it would not. */
function read(base64: string): Sent {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length > MAX_BYTES) throw new RpcError(-32_602, `base64 encoded too large: ${bytes.length} bytes`);
  try {
    const transaction = getTransactionDecoder().decode(bytes);
    const compiled = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
    const again = Buffer.from(getCompiledTransactionMessageEncoder().encode(compiled));
    if (!again.equals(Buffer.from(transaction.messageBytes))) throw new Error('bytes that a node does not read');
    const signatures = Object.values(transaction.signatures).map((each) => base58(each ?? new Uint8Array(64)));
    return {
      bytes,
      transaction,
      signatures,
      signature: signatures[0] ?? '',
      message: compiled,
      blockhash: compiled.lifetimeToken,
      messageHash: createHash('sha256').update(new Uint8Array(transaction.messageBytes)).digest('hex'),
      version: compiled.version === 'legacy' ? 'legacy' : 0,
    };
  } catch (error) {
    throw new RpcError(-32_602, `failed to deserialize: ${String(error)}`);
  }
}
