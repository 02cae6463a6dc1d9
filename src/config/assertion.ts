// The `assertion` section: the signed statement with which Tollgate tells the upstream what let a request pass, and where its public
// keys are read. Left out, nothing is signed and nothing is published.
import { choice, duration, secret, text } from './fields.ts';
import { key, section } from './keys.ts';
import { isMap, valueAt, type Issue } from './problems.ts';

const SECOND_MS = 1_000;
const wholeSeconds = duration(5 * SECOND_MS, 60 * SECOND_MS).refine((ms) => ms % SECOND_MS === 0, {
  error: 'is not in whole seconds; write 5s to 1m',
});

export const assertionSection = section({
  audience: key(
    'audience',
    text('what your API calls itself, such as https://api.internal, without spaces', (value) =>
      /^[\x21-\x7e]{1,256}$/.test(value),
    ),
    'The `aud` of each assertion: the API that it is for. The API refuses any other.',
  ),
  on: key(
    'on',
    choice(['plan', 'protected', 'all']).default('plan'),
    'Requests that carry one: `plan` of routes with a plan, `protected` of every path that a route protects, `all`.',
  ),
  ttl: key('ttlMs', wholeSeconds.prefault('60s'), 'How long an assertion is good, in whole seconds.'),
  alg: key(
    'alg',
    choice(['EdDSA', 'HS256']).default('EdDSA'),
    '`EdDSA`: signed with a key made from `charges.secrets`, whose public key is served. `HS256`: signed with `secret`.',
  ),
  secret: key('secret', secret().optional(), 'The secret of HS256, which your API knows too, and nobody else.'),
});

type RawSection = Readonly<Record<string, unknown>>;

/** Complaints that need more than one key; `raw` may be wrong in any way. */
export function assertionIssues(raw: RawSection): Issue[] {
  return [...secretIssues(raw), ...listenerIssues(raw)];
}

function secretIssues(raw: RawSection): Issue[] {
  const given = raw['assertion'];
  if (!isMap(given)) return [];
  const path = ['assertion', 'secret'];
  const { secret: shared, alg } = given;
  if (alg === 'HS256' && shared === undefined) {
    const message = 'is missing; HS256 signs with a secret that your API knows too: write secret or secret_file';
    return [{ path, message }];
  }
  if (shared === undefined) return [];
  if (alg === undefined || alg === 'EdDSA') {
    const message = 'is of no use to EdDSA, whose keys come from `charges.secrets`; take it out, or write alg: HS256';
    return [{ path, at: 'key', message }];
  }
  const secrets = valueAt(raw, ['charges', 'secrets']);
  if (!Array.isArray(secrets) || !secrets.includes(shared)) return [];
  const message = 'is one of `charges.secrets`: with it your API could sign prices and passes; write another one';
  return [{ path, message }];
}

/** A listener that is not there would publish nothing, and every verifier would refuse everything. */
function listenerIssues(raw: RawSection): Issue[] {
  if (valueAt(raw, ['selling', 'public_keys_listen']) !== 'registry') return [];
  if (Object.hasOwn(raw, 'registry') || valueAt(raw, ['sync', 'listen']) !== undefined) return [];
  const message = 'names a listener that is not here; write admin, or `sync.listen`';
  return [{ path: ['selling', 'public_keys_listen'], message }];
}
