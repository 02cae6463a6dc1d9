// A transaction of a test's Solana chain as a node shows it: in the encoding that is asked for, with the instructions that its
// programs ran, the accounts that its look-up tables name, and what its token accounts held before and after it.
import type { getCompiledTransactionMessageDecoder } from '@solana/kit';
import type { TransactionMetadata } from 'litesvm';
import { base58, PROGRAMS } from './wire.ts';

type Message = ReturnType<ReturnType<typeof getCompiledTransactionMessageDecoder>['decode']>;
/** Bytes and owning program of an account; undefined: there is none. */
export type ReadAccount = (address: string) => { readonly data: Buffer; readonly program: string } | undefined;
/** Accounts that look-up tables add to those of the message. */
export type LoadedAddresses = { readonly writable: readonly string[]; readonly readonly: readonly string[] };
export type TokenBalance = {
  readonly accountIndex: number;
  readonly mint: string;
  readonly owner: string;
  readonly programId: string;
  readonly uiTokenAmount: { readonly amount: string; readonly decimals: number };
};
type Shown = {
  readonly bytes: Buffer;
  readonly message: Message;
  readonly signatures: readonly string[];
  readonly loaded: LoadedAddresses;
  readonly err: string | null;
  readonly ran: TransactionMetadata | undefined;
  readonly before: readonly TokenBalance[];
  readonly after: readonly TokenBalance[];
};

/** Bytes of a look-up table before its addresses, and of an address. */
const TABLE_HEAD = 56;
const KEY_BYTES = 32;
/** Bytes of a token account, and the one behind them that says of a Token-2022 account that it is a mint. */
const ACCOUNT_BYTES = 165;
const MINT_KIND = 1;

export function loadAddresses(message: Message, read: ReadAccount): LoadedAddresses {
  const lookups = 'addressTableLookups' in message ? (message.addressTableLookups ?? []) : [];
  const pick = (table: string, indexes: readonly number[]): string[] =>
    indexes.map((index) => {
      const at = TABLE_HEAD + index * KEY_BYTES;
      return base58(read(table)?.data.subarray(at, at + KEY_BYTES) ?? Buffer.alloc(KEY_BYTES));
    });
  return {
    writable: lookups.flatMap((each) => pick(each.lookupTableAddress, each.writableIndexes)),
    readonly: lookups.flatMap((each) => pick(each.lookupTableAddress, each.readonlyIndexes)),
  };
}

/** What the token accounts among `addresses` hold. */
export function readTokenBalances(addresses: readonly string[], read: ReadAccount): TokenBalance[] {
  return addresses.flatMap((address, accountIndex) => {
    const { data, program } = read(address) ?? { data: Buffer.alloc(0), program: '' };
    const isToken = program === PROGRAMS.token || program === PROGRAMS.token2022;
    if (!isToken || data.length < ACCOUNT_BYTES || data[ACCOUNT_BYTES] === MINT_KIND) return [];
    const amount = data.readBigUInt64LE(2 * KEY_BYTES);
    const [mint, owner] = [base58(data.subarray(0, KEY_BYTES)), base58(data.subarray(KEY_BYTES, 2 * KEY_BYTES))];
    return [{ accountIndex, mint, owner, programId: program, uiTokenAmount: { amount: String(amount), decimals: 6 } }];
  });
}

/** The members `transaction` and `meta` of an answer to getTransaction. */
export function showTransaction(shown: Shown, encoding: string): object {
  const { bytes, message, signatures, loaded, err, ran, before, after } = shown;
  const meta = {
    ...{ err, fee: 10_000, logMessages: [], preBalances: [], postBalances: [], loadedAddresses: loaded },
    innerInstructions: ran === undefined ? [] : innerOf(ran),
    ...{ preTokenBalances: before, postTokenBalances: after },
  };
  if (encoding === 'base64') return { transaction: [bytes.toString('base64'), 'base64'], meta };
  if (encoding !== 'json' || !('instructions' in message)) throw new Error(`not shown here: ${encoding}`);
  const instructions = message.instructions.map(({ programAddressIndex, accountIndices = [], data }) => ({
    ...{ programIdIndex: programAddressIndex, accounts: accountIndices, stackHeight: null },
    data: textOf(data ?? new Uint8Array()),
  }));
  const written = { accountKeys: message.staticAccounts, recentBlockhash: message.lifetimeToken, instructions };
  return { transaction: { signatures, message: written }, meta };
}

function innerOf(ran: TransactionMetadata): object[] {
  return ran.innerInstructions().flatMap((all, index) => {
    const instructions = all.map((each) => {
      const instruction = each.instruction();
      return {
        programIdIndex: instruction.programIdIndex(),
        accounts: [...instruction.accounts()],
        data: textOf(instruction.data()),
        stackHeight: each.stackHeight(),
      };
    });
    return instructions.length === 0 ? [] : [{ index, instructions }];
  });
}

function textOf(bytes: ArrayLike<number>): string {
  return bytes.length === 0 ? '' : base58(Uint8Array.from(bytes));
}
