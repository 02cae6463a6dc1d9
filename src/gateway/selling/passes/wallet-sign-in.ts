// Reads SIGN-IN-WITH-X: who asks, by the signature of a wallet under a message of ours. Only a message of this site, with a
// nonce that we issued less than five minutes ago, is looked at, and its signature is checked once. A client that showed too
// many that were no good waits for its turn: the next one may be right. It proves who asks, never that anything is paid.
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { PassRefusal } from '../../../domain/decide.ts';
import {
  signedMessage,
  type SignInNonce,
  type SignInNonces,
  type SignInSite,
} from '../../../domain/selling/sign-in.ts';
import type { Clock } from '../../../host/clock.ts';
import type { RateLimit } from '../../../host/rate-limit.ts';
import type { SlowLane } from '../../../host/slow-lane.ts';
import type { CheckWallet } from '../../rails/chain-family.ts';

export type SignedIn =
  /** `payer`: the account in its one spelling. */
  | { readonly kind: 'signed'; readonly payer: string }
  | { readonly kind: 'refused'; readonly because: PassRefusal }
  | { readonly kind: 'malformed'; readonly detail: string };

export type SignInDeps = {
  readonly site: SignInSite;
  readonly nonces: Pick<SignInNonces, 'find'>;
  readonly checkWallet: CheckWallet;
  /** Spells an account in its one way. */
  readonly spell: (account: string) => string;
  /** Signatures of each client in a minute that are no good and are checked at once. */
  readonly limit: RateLimit;
  /** Checks those of a client that has shown too many. */
  readonly slowly: SlowLane;
  readonly clock: Pick<Clock, 'now'>;
};

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const KEPT = 10_000;
const NONE: SignedIn = { kind: 'refused', because: 'pass_unknown' };
const UNSUPPORTED: SignedIn = { kind: 'refused', because: 'wallet_unsupported' };
const MALFORMED: SignedIn = {
  kind: 'malformed',
  detail: 'SIGN-IN-WITH-X is not base64 of the JSON of a signed sign-in.',
};

const text = z.string().max(1024);
/** The reference's payload. What we did not issue is not in the message that was signed. */
const payloadSchema = z.object({
  ...{ domain: text, address: text, uri: text, version: text, chainId: text, type: text, nonce: text },
  ...{ issuedAt: text, signature: z.string().max(4000), expirationTime: text.optional() },
  signatureScheme: z.string().max(32).optional(),
});

/** Sign-ins that were good, by the digest of their header: one that is sent again is not checked again. */
type KnownSignIn = { readonly verdict: SignedIn; readonly untilMs: number };

/** What is left to be found out about a sign-in: whether its wallet signed the message. */
type ReadSignIn = {
  readonly kind: 'read';
  readonly chainId: string;
  readonly signed: Parameters<CheckWallet>[1];
  readonly issued: SignInNonce;
};

export function createSignIn(deps: SignInDeps): (value: string, client: string) => Promise<SignedIn> {
  const { limit, slowly, clock } = deps;
  const kept = new LRUCache<string, KnownSignIn>({ max: KEPT });
  return async (value, client) => {
    const digest = hash('sha256', value);
    const known = kept.get(digest);
    if (known !== undefined && clock.now() <= known.untilMs) return known.verdict;
    // Taken beforehand, so that no more are checked at once than may be no good; given back if it was good.
    const isWithin = limit.takeMs(client) === 0;
    const read = readSignIn(deps, value, clock.now());
    if (read.kind !== 'read') return read;
    const check = (): Promise<SignedIn> => checkSignIn(deps, read);
    const verdict = isWithin ? await check() : ((await slowly(check)) ?? NONE);
    if (verdict.kind === 'signed') {
      if (isWithin) limit.giveBack(client);
      kept.set(digest, { verdict, untilMs: Date.parse(read.issued.expirationTime) });
    }
    return verdict;
  };
}

function readSignIn({ site, nonces }: SignInDeps, value: string, nowMs: number): ReadSignIn | SignedIn {
  const payload = parse(value);
  if (payload === undefined) return MALFORMED;
  const { address, chainId, signature, signatureScheme } = payload;
  const issued = nonces.find(payload.nonce, nowMs);
  if (issued === undefined || payload.domain !== site.domain || payload.uri !== site.uri) return NONE;
  if (signatureScheme === 'eip1271' || signatureScheme === 'eip6492') return UNSUPPORTED;
  const message = signedMessage(site, issued, { chainId, address });
  if (message === undefined) return UNSUPPORTED;
  return { kind: 'read', chainId, signed: { message, address, signature }, issued };
}

async function checkSignIn({ checkWallet, spell }: SignInDeps, { chainId, signed }: ReadSignIn): Promise<SignedIn> {
  const checked = await checkWallet(chainId, signed);
  switch (checked) {
    case 'genuine':
      return { kind: 'signed', payer: spell(signed.address) };
    case 'unsupported':
      return UNSUPPORTED;
    case 'forged':
      return NONE;
    case 'malformed':
      return MALFORMED;
    default:
      return checked satisfies never;
  }
}

function parse(value: string): z.output<typeof payloadSchema> | undefined {
  if (!BASE64.test(value)) return undefined;
  try {
    const read = payloadSchema.safeParse(JSON.parse(Buffer.from(value, 'base64').toString()));
    return read.success ? read.data : undefined;
  } catch {
    return undefined;
  }
}
