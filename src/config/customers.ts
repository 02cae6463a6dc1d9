// The keys of `selling.customers`: who need not pay. An entry has exactly one kind of proof. The beginning of a file of keys is read
// when the configuration is, so that a wrong file is told before anything starts; `check` reads all of it.
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { createPublicKey } from 'node:crypto';
import { resolve } from 'node:path';
import { z } from 'zod';
import type { CustomerEntry, CustomerProof } from '../domain/selling/customer.ts';
import { MOST_KEY_FILE_BYTES, readKeyTableAtOnce } from '../domain/selling/key-table.ts';
import { WINDOW_LENGTHS } from '../domain/selling/window.ts';
import { messageOf } from '../host/error-message.ts';
import { algorithmsOf } from '../host/jwt/key-algorithms.ts';
import { isLoopback } from '../host/nearby.ts';
import { choice, cidr, count, described, headerName, hostOf, identifier, parseUrl, secret, text } from './fields.ts';
import { key, section } from './keys.ts';
import { isMap, valueAt, type Issue } from './problems.ts';
import { codeOf } from './secret-files.ts';

const RESERVED =
  /^(tollgate-.*|payment-.*|x-payment.*|x-forwarded-.*|host|connection|content-.*|transfer-encoding|cookie|sign-in-with-x)$/i;
const MOST_NETWORKS = 1000;
const MOST_DEPTH = 3;
const PROOFS = ['keys_file', 'jwt', 'networks', 'ask'];
const TOKEN_KEYS = ['jwks_url', 'public_key', 'secret'];
const PUBLIC_KEY = 'a public key in PEM (BEGIN PUBLIC KEY): RSA of 2048 bits or more, P-256, P-384, P-521 or Ed25519';

const quota = section({
  requests: key('requests', count(0, 1_000_000_000), 'Requests of one customer in the window that cost nothing.'),
  window: key('window', choice(WINDOW_LENGTHS), 'The window, in UTC.'),
});

const claims = described(
  z.record(
    text(
      'the name of a claim, dotted for nested ones, up to 3 deep',
      (name) => name !== '' && name.split('.').length <= MOST_DEPTH,
    ),
    z.array(text('a value of the claim')).min(1, 'is empty; write the values of which the claim must have one'),
    { error: 'is not a section of claims; write each claim with the list of its values' },
  ),
  'claims, each with a list of values',
);

const jwt = section({
  issuer: key('issuer', text('the issuer that tokens must name'), 'The issuer (`iss`) that tokens must name.'),
  audience: key('audience', text('the audience that tokens must name'), 'The audience (`aud`) that tokens must name.'),
  jwks_url: key(
    'jwksUrl',
    text('an https URL, or http to a loopback address', isKeyUrl).optional(),
    'The URL of a key set (JWKS) that verifies tokens. While it was never read, such requests are 503.',
  ),
  public_key: key('publicKey', text(PUBLIC_KEY, isPublicKey).optional(), 'A public key that verifies tokens.'),
  secret: key('secret', secret().optional(), 'A secret that verifies tokens, which are signed by HS256 then.'),
  require: key('require', claims.default({}), 'Claims that a token must have, each with one of these values.'),
  name: key(
    'name',
    text('the name of a claim').optional(),
    'The claim that names the customer. Left out: the `id` here.',
  ),
});

const ask = section({
  statuses: key(
    'statuses',
    z
      .array(
        z.union([z.literal(401), z.literal(403)], {
          error: 'is not 401 or 403; write those with which your API says no',
        }),
      )
      .min(1, 'is empty; write 401, or 401 and 403'),
    'The statuses with which your API says that it does not know the customer: the request is asked to pay.',
  ),
});

/** An entry; paths in it are relative to `folder`. */
export function customerSection(folder: string) {
  return section({
    id: key('id', identifier('a name of this entry'), "The name of the entry, which a plan's `customers` names."),
    header: key(
      'header',
      headerName('a header name of letters, digits and dashes')
        .refine((value) => !RESERVED.test(value), {
          error: 'is a header with a meaning of its own; choose another name',
        })
        .optional(),
      'The header that carries the credential. Left out for `networks`.',
    ),
    keys_file: key(
      'keysFile',
      text('a file of keys')
        .transform((name, context) => {
          const file = resolve(folder, name);
          const fault = findFault(file);
          if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
          return file;
        })
        .optional(),
      'A file with a line for each key: the SHA-256 of the key in hex, then maybe a name. Read again within a second; a million keys within two.',
    ),
    jwt: key('jwt', jwt.optional(), 'Tokens (JWT) of an issuer of yours.'),
    networks: key(
      'networks',
      z
        .array(cidr())
        .min(1, 'is empty; write at least one')
        .max(MOST_NETWORKS, `holds more than ${MOST_NETWORKS} networks`)
        .optional(),
      'Networks whose clients need not pay. Behind a proxy `trusted_proxies` must name it.',
    ),
    ask: key('ask', ask.optional(), "Your API's own sign-in decides. `tollgate probe` shows whether it can."),
    quota: key('quota', quota.optional(), 'Requests of one customer that cost nothing. Left out: all of them.'),
  });
}

type CustomerSection = z.output<ReturnType<typeof customerSection>>;

export function toCustomer({ id, header = '', quota: given, ...rest }: CustomerSection): CustomerEntry {
  return { id, header: header.toLowerCase(), proof: proofOf(rest), quota: given };
}

function proofOf({
  keysFile,
  jwt: token,
  networks,
  ask: asked,
}: Omit<CustomerSection, 'id' | 'header' | 'quota'>): CustomerProof {
  if (keysFile !== undefined) return { kind: 'keys', file: keysFile };
  if (networks !== undefined) return { kind: 'networks', cidrs: networks };
  if (token === undefined) return { kind: 'ask', statuses: asked?.statuses ?? [] };
  const { issuer, audience, require: required, name, secret: shared, publicKey: pem, jwksUrl } = token;
  const by =
    shared !== undefined
      ? ({ kind: 'secret', secret: shared } as const)
      : pem !== undefined
        ? ({ kind: 'public_key', pem } as const)
        : ({ kind: 'jwks', url: jwksUrl ?? '' } as const);
  return { kind: 'jwt', issuer, audience, key: by, require: required, name };
}

/** Complaints about an entry at `path` that need more than one key; `entry` may be wrong in any way. */
export function customerIssues(entry: unknown, path: Issue['path']): Issue[] {
  if (!isMap(entry)) return [];
  const issues: Issue[] = [];
  const given = PROOFS.filter((name) => Object.hasOwn(entry, name));
  if (given.length !== 1) {
    const wrong = given.length === 0 ? 'says nothing by which a customer is known' : `has ${given.join(' and ')}`;
    issues.push({ path, message: `${wrong}; write exactly one of ${PROOFS.join(', ')}` });
  }
  const needsHeader = !given.includes('networks');
  if (given.length === 1 && needsHeader && entry['header'] === undefined)
    issues.push({ path: [...path, 'header'], message: 'is missing; write the header that carries the credential' });
  if (!needsHeader && entry['header'] !== undefined)
    issues.push({
      path: [...path, 'header'],
      at: 'key',
      message: 'stands beside `networks`, which need none; take it out',
    });
  if (given.includes('ask') && entry['quota'] !== undefined)
    issues.push({
      path: [...path, 'quota'],
      at: 'key',
      message: 'stands beside `ask`, which names nobody who could be counted; take it out',
    });
  const token = valueAt(entry, ['jwt']);
  if (isMap(token)) {
    const keys = TOKEN_KEYS.filter((name) => token[name] !== undefined);
    const wrong = keys.length === 0 ? 'says nothing to check tokens with' : `has ${keys.join(' and ')}`;
    if (keys.length !== 1)
      issues.push({
        path: [...path, 'jwt'],
        at: 'key',
        message: `${wrong}; write exactly one of ${TOKEN_KEYS.join(', ')}`,
      });
  }
  return issues;
}

function findFault(file: string): string | undefined {
  try {
    if (statSync(file).size > MOST_KEY_FILE_BYTES) return `names a file of more than ${MOST_KEY_FILE_BYTES} bytes`;
    readKeyTableAtOnce(firstLines(file));
    return undefined;
  } catch (error) {
    const isOfSystem = error instanceof Error && 'code' in error;
    return isOfSystem
      ? `names a file that cannot be read (${codeOf(error)}); check the path and its permissions`
      : `names a file that is not right: ${messageOf(error)}`;
  }
}

/** Bytes of a file of keys that are looked at with the configuration: a reload must not stop for a million keys. */
const CHECKED_BYTES = 1024 * 1024;

/** The first lines of a file, or all of it if it is not large. */
function firstLines(file: string): Uint8Array {
  const open = openSync(file, 'r');
  try {
    const bytes = Buffer.alloc(CHECKED_BYTES);
    const read = readSync(open, bytes);
    return read < CHECKED_BYTES ? bytes.subarray(0, read) : bytes.subarray(0, bytes.lastIndexOf('\n'));
  } finally {
    closeSync(open);
  }
}

function isKeyUrl(value: string): boolean {
  const parsed = parseUrl(value);
  return parsed !== undefined && (parsed.protocol === 'https:' || isLoopback(hostOf(parsed)));
}

function isPublicKey(value: string): boolean {
  if (value.includes('PRIVATE KEY')) return false;
  try {
    return algorithmsOf(createPublicKey(value)).length > 0;
  } catch {
    return false;
  }
}
