// Reads a Solana transaction as a node would: every length in its one minimal form, every index inside its list, no
// byte too many. Facilitators are more lenient, but a transaction that no node takes can never pay. Transactions with
// address look-up tables are refused: only the chain knows what they touch. Source: Solana's transaction format, legacy
// and version 0.
import { createPublicKey, hash, verify } from 'node:crypto';
import { decodeBase64 } from '../x402/client-wire.ts';
import { readBase58, writeBase58 } from './addresses.ts';

export type Instruction = {
  readonly program: string;
  readonly accounts: readonly string[];
  readonly data: Buffer;
};

export type Transaction = {
  /** Accounts whose signatures are required, the fee payer first. */
  readonly signers: readonly string[];
  /** Signatures in the order of `signers`. The fee payer's may be missing, as zeros. */
  readonly signatures: readonly Buffer[];
  /** Message that all of them sign. */
  readonly message: Buffer;
  /** SHA-256 of the message in hex: unlike a signature it cannot be varied, so it names the payment. */
  readonly messageHash: string;
  readonly blockhash: string;
  readonly instructions: readonly Instruction[];
};

type TransactionReading =
  | { readonly ok: true; readonly transaction: Transaction }
  /** The transaction cannot be read. `why` begins with a verb and holds nothing of the transaction. */
  | { readonly ok: false; readonly why: string };

/** The network's limit. */
export const MAX_TRANSACTION_BYTES = 1232;
export const SIGNATURE_BYTES = 64;
const KEY_BYTES = 32;
const VERSIONED = 0x80;

class MalformedError extends Error {}

export function readTransaction(base64: string): TransactionReading {
  const bytes = decodeBase64(base64);
  if (bytes === undefined) return { ok: false, why: 'is not base64 of the standard alphabet' };
  if (bytes.length > MAX_TRANSACTION_BYTES)
    return { ok: false, why: `is longer than ${MAX_TRANSACTION_BYTES} bytes, which no node takes` };
  try {
    return { ok: true, transaction: read(bytes) };
  } catch (error) {
    if (error instanceof MalformedError) return { ok: false, why: error.message };
    throw error;
  }
}

/** Whether `signature` is that of signer number `index` over the message (Ed25519, RFC 8032). */
export function isSignedBy({ signers, message }: Transaction, index: number, signature: Buffer | undefined): boolean {
  const signer = signers[index];
  const x = signer === undefined ? undefined : readBase58(signer, KEY_BYTES)?.toString('base64url');
  if (x === undefined || signature === undefined) return false;
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  return verify(null, message, key, signature);
}

function read(bytes: Buffer): Transaction {
  const reader = new Reader(bytes);
  const signatures = reader.list('signatures', () => reader.take(SIGNATURE_BYTES));
  const message = bytes.subarray(reader.at);

  const first = reader.byte();
  const versioned = first >= VERSIONED;
  if (versioned && first !== VERSIONED) throw new MalformedError('is of a version other than 0');
  const required = versioned ? reader.byte() : first;
  const [readonlySigned, readonlyUnsigned] = [reader.byte(), reader.byte()];
  const keys = reader.list('accounts', () => reader.take(KEY_BYTES));
  const blockhash = reader.take(KEY_BYTES);
  const raw = reader.list('instructions', () => ({
    program: reader.byte(),
    accounts: reader.list('accounts of an instruction', () => reader.byte()),
    data: reader.take(reader.length('bytes of an instruction')),
  }));
  if (versioned && reader.length('look-up tables') > 0)
    throw new MalformedError('uses address look-up tables, which are not taken here');
  if (reader.at !== bytes.length) throw new MalformedError('has bytes after its end');

  if (signatures.length !== required) throw new MalformedError('does not have as many signatures as it requires');
  if (required + readonlyUnsigned > keys.length || readonlySigned >= required)
    throw new MalformedError('has a header that does not fit its accounts');
  const accounts = keys.map(writeBase58);
  if (new Set(accounts).size !== accounts.length) throw new MalformedError('names an account twice');
  const accountAt = (index: number): string => {
    const account = accounts[index];
    if (account === undefined) throw new MalformedError('names an account that it does not list');
    return account;
  };
  const instructions = raw.map(({ program, accounts: indexes, data }) => {
    if (program === 0) throw new MalformedError('runs its fee payer as a program');
    return { program: accountAt(program), accounts: indexes.map(accountAt), data };
  });
  return {
    signers: accounts.slice(0, required),
    signatures,
    message,
    messageHash: hash('sha256', message, 'hex'),
    blockhash: writeBase58(blockhash),
    instructions,
  };
}

/** Takes bytes one after the other; throws `MalformedError` if there are none left. */
class Reader {
  at = 0;
  private readonly all: Buffer;

  constructor(all: Buffer) {
    this.all = all;
  }

  take(length: number): Buffer {
    const end = this.at + length;
    if (end > this.all.length) throw new MalformedError('ends too early');
    const taken = this.all.subarray(this.at, end);
    this.at = end;
    return taken;
  }

  byte(): number {
    return this.take(1).readUInt8();
  }

  /** A length as Solana writes it: seven bits a byte, the lowest first, never longer than it has to be. */
  length(of: string): number {
    let length = 0;
    for (let shift = 0; shift <= 14; shift += 7) {
      const byte = this.byte();
      length += (byte & 0x7f) << shift;
      if (byte >= 0x80) continue;
      if ((byte === 0 && shift > 0) || length > 0xffff) break;
      return length;
    }
    throw new MalformedError(`writes the number of its ${of} in another than the shortest form`);
  }

  list<T>(of: string, item: () => T): readonly T[] {
    // Every item takes at least one byte, so a length that is a lie ends with the bytes.
    return Array.from({ length: this.length(of) }, item);
  }
}
