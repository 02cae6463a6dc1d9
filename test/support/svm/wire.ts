// Solana transactions made by bytes, the honest one and every other: what a library refuses to build can be built here.
// Keys come from a name, so that a test that fails does so again.
import { createHash, createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto';

export const PROGRAMS = {
  system: '11111111111111111111111111111111',
  computeBudget: 'ComputeBudget111111111111111111111111111111',
  token: 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  token2022: 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
  associated: 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL',
  memo: 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr',
  oldMemo: 'Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo',
  lighthouse: 'L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95',
} as const;

export type Key = {
  readonly address: string;
  readonly bytes: Buffer;
  readonly seed: Buffer;
  readonly secret: KeyObject;
};

/** The key pair of a name. */
export function keyOf(name: string): Key {
  return keyFrom(createHash('sha256').update(name).digest());
}

/** `seed`: 32 bytes. */
export function keyFrom(seed: Buffer): Key {
  const secret = createPrivateKey({
    key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]),
    format: 'der',
    type: 'pkcs8',
  });
  const { x = '' } = createPublicKey(secret).export({ format: 'jwk' });
  const bytes = Buffer.from(x, 'base64url');
  return { address: base58(bytes), bytes, seed, secret };
}

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

export function base58(bytes: Uint8Array): string {
  const digits = [0];
  for (const byte of bytes) {
    let carry = byte;
    for (let at = 0; at < digits.length; at++) {
      carry += (digits[at] ?? 0) * 256;
      digits[at] = carry % 58;
      carry = Math.floor(carry / 58);
    }
    for (; carry > 0; carry = Math.floor(carry / 58)) digits.push(carry % 58);
  }
  const zeros = bytes.findIndex((byte) => byte !== 0);
  const leading = '1'.repeat(zeros < 0 ? bytes.length : zeros);
  if (zeros < 0) return leading;
  return (
    leading +
    digits
      .map((digit) => ALPHABET[digit])
      .reverse()
      .join('')
  );
}

export function unbase58(text: string): Buffer {
  const bytes = [0];
  for (const character of text) {
    let carry = ALPHABET.indexOf(character);
    if (carry < 0) throw new Error(`not base58: ${text}`);
    for (let at = 0; at < bytes.length; at++) {
      carry += (bytes[at] ?? 0) * 58;
      bytes[at] = carry & 0xff;
      carry >>= 8;
    }
    for (; carry > 0; carry >>= 8) bytes.push(carry & 0xff);
  }
  const leading = text.length - text.replace(/^1+/, '').length;
  while (bytes.length > 0 && bytes.at(-1) === 0) bytes.pop();
  return Buffer.concat([Buffer.alloc(leading), Buffer.from(bytes.toReversed())]);
}

/** A length in seven bits a byte. `bytes`: written longer than it has to be. */
export function compact(length: number, bytes = 0): Buffer {
  const written: number[] = [];
  for (let rest = length; ; rest >>= 7) {
    const last = rest < 0x80 && written.length + 1 >= bytes;
    written.push(last ? rest : (rest & 0x7f) | 0x80);
    if (last) return Buffer.from(written);
  }
}

export type Meta = { readonly address: string; readonly writable?: boolean; readonly signer?: boolean };
export type Draft = {
  readonly feePayer: Key;
  readonly instructions: readonly {
    readonly program: string;
    readonly accounts?: readonly Meta[];
    readonly data: Buffer;
  }[];
  /** Those whose signatures are put in; by default none. The fee payer's stays empty, as clients leave it. */
  readonly sign?: readonly Key[];
  readonly blockhash?: Buffer;
  readonly version?: 'legacy' | number;
  readonly lookups?: Buffer;
  /** Addresses that the look-up tables add, in their order. */
  readonly loaded?: readonly string[];
  /** Changes the message before it is signed. */
  readonly message?: (message: Buffer) => Buffer;
};

export type Built = { readonly bytes: Buffer; readonly message: Buffer; readonly base64: string };

export function buildTransaction(draft: Draft): Built {
  const { feePayer, instructions, sign: signing = [], version = 0, loaded = [] } = draft;
  const metas = new Map<string, { signer: boolean; writable: boolean }>();
  metas.set(feePayer.address, { signer: true, writable: true });
  const add = (address: string, signer = false, writable = false): void => {
    const known = metas.get(address) ?? { signer: false, writable: false };
    metas.set(address, { signer: known.signer || signer, writable: known.writable || writable });
  };
  for (const { program, accounts = [] } of instructions) {
    for (const { address, signer, writable } of accounts) add(address, signer, writable);
    add(program);
  }
  const rank = ({ signer, writable }: { signer: boolean; writable: boolean }): number =>
    (signer ? 0 : 2) + (writable ? 0 : 1);
  const sorted = [...metas]
    .filter(([address]) => !loaded.includes(address))
    .toSorted(([a, one], [b, other]) =>
      a === feePayer.address ? -1 : b === feePayer.address ? 1 : rank(one) - rank(other),
    );
  const addresses = sorted.map(([address]) => address);
  const count = (wanted: number): number => sorted.filter(([, meta]) => rank(meta) === wanted).length;
  const required = count(0) + count(1);
  const at = (address: string): number => [...addresses, ...loaded].indexOf(address);
  const made = Buffer.concat([
    version === 'legacy' ? Buffer.alloc(0) : Buffer.of(0x80 | version),
    Buffer.of(required, count(1), count(3)),
    compact(addresses.length),
    ...addresses.map(unbase58),
    draft.blockhash ?? Buffer.alloc(32, 7),
    compact(instructions.length),
    ...instructions.flatMap(({ program, accounts = [], data }) => [
      Buffer.of(at(program)),
      compact(accounts.length),
      Buffer.from(accounts.map(({ address }) => at(address))),
      compact(data.length),
      data,
    ]),
    version === 'legacy' ? Buffer.alloc(0) : (draft.lookups ?? compact(0)),
  ]);
  const message = draft.message?.(made) ?? made;
  const signatures = addresses.slice(0, required).map((address) => {
    const key = signing.find((one) => one.address === address);
    return key === undefined ? Buffer.alloc(64) : sign(null, message, key.secret);
  });
  const bytes = Buffer.concat([compact(required), ...signatures, message]);
  return { bytes, message, base64: bytes.toString('base64') };
}

export function computeLimit(units: number): Draft['instructions'][number] {
  const data = Buffer.alloc(5);
  data.writeUInt8(2);
  data.writeUInt32LE(units, 1);
  return { program: PROGRAMS.computeBudget, data };
}

export function computePrice(microLamports: bigint): Draft['instructions'][number] {
  const data = Buffer.alloc(9);
  data.writeUInt8(3);
  data.writeBigUInt64LE(microLamports, 1);
  return { program: PROGRAMS.computeBudget, data };
}

export function memo(text: string, accounts: readonly Meta[] = []): Draft['instructions'][number] {
  return { program: PROGRAMS.memo, accounts, data: Buffer.from(text) };
}

export type TransferDraft = {
  readonly source: string;
  readonly mint: string;
  readonly destination: string;
  readonly authority: string;
  readonly amount: bigint;
  readonly decimals: number;
  readonly program?: string;
};

export function transferChecked(of: TransferDraft): Draft['instructions'][number] {
  const data = Buffer.alloc(10);
  data.writeUInt8(12);
  data.writeBigUInt64LE(of.amount, 1);
  data.writeUInt8(of.decimals, 9);
  const accounts = [
    { address: of.source, writable: true },
    { address: of.mint },
    { address: of.destination, writable: true },
    { address: of.authority, signer: true },
  ];
  return { program: of.program ?? PROGRAMS.token, accounts, data };
}
