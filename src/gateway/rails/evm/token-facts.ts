// Reads what a token contract says of itself: the EIP-712 domain that payers have to sign for, and its decimals.
// Sources: ERC-20, EIP-3009, ERC-5267.
import { z } from 'zod';
import type { Rpc } from '../json-rpc.ts';
import type { RailOutage } from '../rail.ts';

export type Token = {
  readonly kind: 'token';
  /** Name of the token; undefined: the contract does not say. */
  readonly name: string | undefined;
  readonly version: string | undefined;
  readonly decimals: number | undefined;
};

// Selectors are Keccak-256 of the signatures beside them (ERC-20, EIP-3009, ERC-5267); the tests compute them again.
/** name() version() decimals() eip712Domain() */
export const SELECTORS = { name: '0x06fdde03', version: '0x54fd4d50', decimals: '0x313ce567', domain: '0x84b0196e' };

const bytes = z
  .string()
  .regex(/^0x(?:[0-9a-f]{2})*$/i)
  .max(20_000);
const WORD = 32;
const MAX_TEXT = 256;
/** Codes with which nodes report a call that reverts: JSON-RPC's own, and the one that Geth made customary. */
const REVERTED = new Set([3, -32_000, -32_015]);

/** Asks `asset`; `no_contract` if no code is at the address. */
export async function readToken(
  rpc: Rpc,
  asset: string,
): Promise<Token | { readonly kind: 'no_contract' } | RailOutage> {
  const code = await rpc('eth_getCode', [asset, 'latest'], z.string().regex(/^0x[0-9a-f]*$/i));
  if (code.kind === 'error') return { kind: 'unavailable', detail: `eth_getCode: error ${code.code}` };
  if (code.kind === 'unavailable') return code;
  if (code.value === '0x') return { kind: 'no_contract' };

  const answers: Buffer[] = [];
  for (const data of [SELECTORS.domain, SELECTORS.name, SELECTORS.version, SELECTORS.decimals]) {
    const answer = await rpc('eth_call', [{ to: asset, data }, 'latest'], bytes);
    if (answer.kind === 'unavailable') return answer;
    if (answer.kind === 'error' && !REVERTED.has(answer.code)) {
      return { kind: 'unavailable', detail: `eth_call: error ${answer.code}` };
    }
    // A contract without the function reverts, or answers nothing.
    answers.push(answer.kind === 'error' ? Buffer.alloc(0) : Buffer.from(answer.value.slice(2), 'hex'));
  }
  const [domain = NOTHING, name = NOTHING, version = NOTHING, decimals = NOTHING] = answers;
  return {
    kind: 'token',
    // ERC-5267 is what is signed; name() and version() are only usually the same.
    name: readText(domain, 1) ?? readText(name, 0),
    version: readText(domain, 2) ?? readText(version, 0),
    decimals:
      decimals.length === WORD && decimals.subarray(0, WORD - 1).every((byte) => byte === 0)
        ? decimals[WORD - 1]
        : undefined,
  };
}

const NOTHING = Buffer.alloc(0);

/** The ABI string whose offset stands in word `index`, or undefined if there is none. */
function readText(data: Buffer, index: number): string | undefined {
  const offset = readNumber(data, index * WORD);
  const length = offset === undefined ? undefined : readNumber(data, offset);
  if (offset === undefined || length === undefined || length > MAX_TEXT) return undefined;
  const text = data.subarray(offset + WORD, offset + WORD + length);
  return text.length === length ? text.toString('utf8') : undefined;
}

/** The 32-byte number at `at`, or undefined if there is none or it cannot be a place in this data. */
function readNumber(data: Buffer, at: number): number | undefined {
  if (at + WORD > data.length) return undefined;
  const value = BigInt(`0x${data.toString('hex', at, at + WORD)}`);
  return value <= BigInt(data.length) ? Number(value) : undefined;
}
