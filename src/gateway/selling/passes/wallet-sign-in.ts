// Reads SIGN-IN-WITH-X: who asks, by the signature of a wallet under a message of ours. Only a message of this site, with a
// nonce that we issued less than five minutes ago, is looked at; a signature is checked once, and so many that are no good a
// minute and client. It proves who asks, never that anything is paid.
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { PassRefusal } from '../../../domain/decide.ts';
import { SIGN_IN_LIFE_MS, signedMessage, type SignInNonces, type SignInSite } from '../../../domain/selling/sign-in.ts';
import type { Clock } from '../../../host/clock.ts';
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
  /** Whether this client has shown too many signatures that were no good. */
  readonly limit: { readonly isOver: (client: string) => boolean; readonly count: (client: string) => void };
  readonly clock: Pick<Clock, 'now'>;
};

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const KEPT = 10_000;
const NONE: SignedIn = { kind: 'refused', because: 'pass_unknown' };
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

/** Verdicts on headers, by their digest: one that is sent again is not checked again. */
type KnownSignIn = { readonly verdict: SignedIn; readonly untilMs: number };

export function createSignIn(deps: SignInDeps): (value: string, client: string) => Promise<SignedIn> {
  const { limit, clock } = deps;
  const kept = new LRUCache<string, KnownSignIn>({ max: KEPT });
  return async (value, client) => {
    const digest = hash('sha256', value);
    const known = kept.get(digest);
    if (known !== undefined && clock.now() < known.untilMs) return known.verdict;
    if (limit.isOver(client)) return NONE;
    const verdict = await readSignIn(deps, value, clock.now());
    if (verdict.kind === 'signed') kept.set(digest, { verdict, untilMs: clock.now() + SIGN_IN_LIFE_MS });
    else limit.count(client);
    return verdict;
  };
}

async function readSignIn(deps: SignInDeps, value: string, nowMs: number): Promise<SignedIn> {
  const { site, nonces, checkWallet, spell } = deps;
  const payload = parse(value);
  if (payload === undefined) return MALFORMED;
  const { address, chainId, signature, signatureScheme } = payload;
  const issued = nonces.find(payload.nonce, nowMs);
  if (issued === undefined || payload.domain !== site.domain || payload.uri !== site.uri) return NONE;
  if (signatureScheme === 'eip1271' || signatureScheme === 'eip6492')
    return { kind: 'refused', because: 'wallet_unsupported' };
  const message = signedMessage(site, issued, { chainId, address });
  if (message === undefined) return { kind: 'refused', because: 'wallet_unsupported' };
  const checked = await checkWallet(chainId, { message, address, signature });
  switch (checked) {
    case 'genuine':
      return { kind: 'signed', payer: spell(address) };
    case 'unsupported':
      return { kind: 'refused', because: 'wallet_unsupported' };
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
