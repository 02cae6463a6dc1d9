// Says to a facilitator who calls: the value of `Authorization` for one call. A bearer token is the operator's own; CDP
// and PayAI want a token for each call, signed with the key of an account, that holds for two minutes.
// Sources: Coinbase CDP API authentication, PayAI merchant authentication, RFC 7519 (JWT), RFC 8037 (EdDSA).
import { SignJWT } from 'jose';
import type { FacilitatorAuth, SigningAuth } from '../../../domain/payment/offer.ts';
import type { Clock, Random } from '../../../host/clock.ts';
import { makeUuid } from '../../../host/identifiers.ts';

/** Resolves to the value of `Authorization` for this very call. */
export type Authorizer = (auth: FacilitatorAuth, method: 'GET' | 'POST', url: URL) => Promise<string>;

const LIFETIME_SECONDS = 120;
/** CDP refuses what is issued in its future: our clock may be ahead by so much. */
const CDP_BACKDATED_SECONDS = 5;
const NONCE_BYTES = 16;

export function createAuthorize(clock: Pick<Clock, 'now'>, random: Random): Authorizer {
  return async (auth, method, url) => {
    switch (auth.kind) {
      case 'bearer':
        return `Bearer ${auth.token}`;
      case 'cdp': {
        const issuedAt = Math.floor(clock.now() / 1000) - CDP_BACKDATED_SECONDS;
        const claims = { iss: 'cdp', uris: [`${method} ${url.host}${url.pathname}`], nbf: issuedAt };
        return sign(auth, issuedAt, claims, { nonce: random(NONCE_BYTES).toString('hex') });
      }
      case 'payai': {
        const issuedAt = Math.floor(clock.now() / 1000);
        return sign(auth, issuedAt, { iss: 'payai-merchant', jti: makeUuid(random) }, {});
      }
      default:
        return auth satisfies never;
    }
  };
}

async function sign(
  { key, keyId }: SigningAuth,
  issuedAt: number,
  claims: Readonly<Record<string, unknown>>,
  header: Readonly<Record<string, string>>,
): Promise<string> {
  const alg = key.asymmetricKeyType === 'ed25519' ? 'EdDSA' : 'ES256';
  const token = await new SignJWT({ ...claims })
    .setProtectedHeader({ alg, kid: keyId, typ: 'JWT', ...header })
    .setSubject(keyId)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + LIFETIME_SECONDS)
    .sign(key);
  return `Bearer ${token}`;
}
