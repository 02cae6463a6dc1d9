// The assertion under a configuration: what signs it, and where its public keys are read. Every listener that could publish them is
// wrapped once and asks the configuration in force, so a reload moves them. The proxy's port never serves them: any path
// there is the upstream's.
import type { RequestListener } from 'node:http';
import type { Config, ProxyConfig } from '../config/config.ts';
import { createDerivedKey, createSharedKey, publicKeySet, type AssertionKey } from '../domain/selling/assertion-key.ts';
import { createAssert, type Assert } from '../gateway/selling/assertion.ts';
import type { Clock, Random } from '../host/clock.ts';
import { createTokens } from '../host/identifiers.ts';
import type { Log } from '../host/log.ts';
import { respond } from '../host/respond.ts';

type SigningConfig = Pick<Config, 'assertion' | 'charges'>;

const PUBLIC_KEYS = '/.well-known/jwks.json';
const JTI_BYTES = 18;
/** Issuer of an API that has no public URL. */
const NAMELESS = 'tollgate';

/** Makes what asserts requests; undefined: nothing is asserted. */
export function assertFor(
  config: SigningConfig,
  { publicUrl }: Pick<ProxyConfig, 'publicUrl'>,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): Assert | undefined {
  const key = keyOf(config);
  if (config.assertion === undefined || key === undefined) return undefined;
  const { audience, on, ttlMs } = config.assertion;
  return createAssert({
    ...{ key, audience, on, issuer: publicUrl ?? NAMELESS, ttlSeconds: ttlMs / 1000 },
    ...{ now: clock.now, token: createTokens(random, JTI_BYTES, 'base64url') },
  });
}

function keyOf({ assertion, charges }: SigningConfig): AssertionKey | undefined {
  if (assertion === undefined) return undefined;
  if (assertion.alg === 'HS256') return createSharedKey(assertion.secret ?? '');
  const [first = ''] = charges.secrets;
  return createDerivedKey(first);
}

/** Says in the log what the upstream is told under a configuration. */
export function tellAssertion(config: SigningConfig & Pick<Config, 'selling'>, log: Log): void {
  const key = keyOf(config);
  if (config.assertion === undefined || key === undefined) return;
  const { audience, on, alg, ttlMs } = config.assertion;
  const published = alg === 'EdDSA' ? { public_keys: `${config.selling.publicKeysListen} ${PUBLIC_KEYS}` } : {};
  log.info('requests are asserted to the upstream', {
    ...{ audience, on, alg, ttl_s: ttlMs / 1000, kid: key.kid, ...published },
  });
}

/** Puts the public keys before `handle`, for as long as the configuration in force names this listener. */
export function publishKeys(
  listener: Config['selling']['publicKeysListen'],
  config: () => Config,
  handle: RequestListener,
): RequestListener {
  let kept: { readonly secrets: readonly string[]; readonly body: string } | undefined;
  return (req, res) => {
    const isRead = req.method === 'GET' || req.method === 'HEAD';
    if (!isRead || req.url?.split('?', 1)[0] !== PUBLIC_KEYS) return handle(req, res);
    const { assertion, selling, charges } = config();
    if (assertion?.alg !== 'EdDSA' || selling.publicKeysListen !== listener) return handle(req, res);
    if (kept?.secrets !== charges.secrets) kept = { secrets: charges.secrets, body: publicKeySet(charges.secrets) };
    const headers = ['Content-Type', 'application/json', 'Cache-Control', 'max-age=60'];
    respond(res, { status: 200, headers, body: kept.body }, req.method === 'HEAD');
  };
}
