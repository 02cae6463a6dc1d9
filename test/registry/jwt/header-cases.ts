// Tokens that bring their key, name one by a path, a statement or a URL, or ask for rules of their own.
import { refused, taken, type TokenCase } from './case.ts';
import { attackerEc, attackerRsa, ecdsa, hmac, rsa } from './forge.ts';
import { issue, jwkOf, type Setting } from './settings.ts';

/** A signer of the attacker in the family that the setting takes. */
const attacker = ({ signer }: Setting) =>
  signer.alg.startsWith('HS')
    ? hmac(256, 'a secret that the attacker has chosen, long enough')
    : signer.alg.startsWith('ES')
      ? ecdsa(attackerEc.privateKey)
      : rsa(256, attackerRsa.privateKey);
const attackerJwk = ({ signer }: Setting) =>
  signer.alg.startsWith('HS')
    ? { kty: 'oct', k: Buffer.from('a secret that the attacker has chosen, long enough').toString('base64url') }
    : jwkOf((signer.alg.startsWith('ES') ? attackerEc : attackerRsa).publicKey);
const CERTIFICATE = Buffer.from('30820122300d06092a864886f70d01010105000382010f', 'hex').toString('base64');

const BROUGHT: readonly (readonly [string, (s: Setting) => Record<string, unknown>])[] = [
  ['jwk', (s) => ({ jwk: attackerJwk(s) })],
  ['jku', (s) => ({ jku: `${s.trap}/keys` })],
  ['x5u', (s) => ({ x5u: `${s.trap}/chain.pem` })],
  ['x5c', () => ({ x5c: [CERTIFICATE] })],
  ['x5t and x5t#S256', () => ({ x5t: 'AAAA', 'x5t#S256': 'AAAA' })],
  ['everything at once', (s) => ({ jwk: attackerJwk(s), jku: `${s.trap}/k`, x5u: `${s.trap}/c`, x5c: [CERTIFICATE] })],
];
const STRANGE_IDS = [
  ['a path', '../../../../../../dev/null'],
  ['an absolute path', '/dev/null'],
  ['a path with a NUL', '/dev/null\u0000.pem'],
  ['a statement of SQL', "x' UNION SELECT 'a secret that the attacker has chosen, long enough' --"],
  ['a shell command', '$(curl trap)|`id`;/bin/true'],
  ['a template', '${jndi:ldap://127.0.0.1/a}{{7*7}}'],
  ['a line break', 'a\r\nX-Admin: 1'],
  ['a member of every object', '__proto__'],
  ['a constructor', 'constructor'],
  ['unknown', 'ec-2'],
  ['very long', 'k'.repeat(3000)],
] as const;
const ODD_IDS: readonly unknown[] = [1, null, true, [], ['ec-1'], {}, { toString: 'ec-1' }];
const idIsIgnored = ({ name }: Setting): boolean => name !== 'jwks_url';

export const HEADER_CASES: readonly TokenCase[] = [
  ...BROUGHT.flatMap(([what, header]) => [
    refused(`an attacker's key brought along: ${what}`, (s) => issue(s, {}, header(s), attacker(s))),
    taken(`${what} beside the right signature is not read`, (s) => issue(s, {}, header(s))),
  ]),
  refused('a URL as the id of a key', (s) => issue(s, {}, { kid: `${s.trap}/keys` }, attacker(s))),
  ...STRANGE_IDS.flatMap(([what, kid]): TokenCase[] => [
    refused(`a key id that is ${what}, by an attacker`, (s) => issue(s, {}, { kid }, attacker(s))),
    refused(`a key id that is ${what}, and an empty secret`, (s) => issue(s, {}, { kid }, hmac(256, ''))),
    {
      name: `a key id that is ${what}, over the right signature`,
      token: (s) => issue(s, {}, { kid }),
      verdict: (s) => (idIsIgnored(s) ? 'taken' : 'refused'),
    },
  ]),
  ...ODD_IDS.map((kid) => refused(`kid ${JSON.stringify(kid)}`, (s) => issue(s, {}, { kid }))),
  {
    name: 'an empty kid',
    token: (s) => issue(s, {}, { kid: '' }),
    verdict: (s) => (idIsIgnored(s) ? 'taken' : 'refused'),
  },
  taken('no kid, and one key that fits', (s) => issue(s, {}, { kid: undefined })),

  refused('crit that names exp', (s) => issue(s, {}, { crit: ['exp'], exp: 1 })),
  refused('crit that names nothing', (s) => issue(s, {}, { crit: [] })),
  refused('crit as text', (s) => issue(s, {}, { crit: 'b64' })),
  refused('crit that names what is not there', (s) => issue(s, {}, { crit: ['http://example.com/ext'] })),
  refused('crit that names b64, which is true', (s) => issue(s, {}, { crit: ['b64'], b64: true })),
  refused('b64 false, critical', (s) => issue(s, {}, { crit: ['b64'], b64: false })),
  refused('b64 false, not critical', (s) => issue(s, {}, { b64: false })),
  refused('b64 true', (s) => issue(s, {}, { b64: true })),

  ...['JWT', 'jwt', 'application/jwt', 'at+jwt', 'application/at+JWT', undefined].map((typ) =>
    taken(`typ ${typ}`, (s) => issue(s, {}, { typ })),
  ),
  ...['', 'JOSE', 'logout+jwt', 'dpop+jwt', 'secevent+jwt', 'kb+jwt', 'JWT ', 'text/jwt', null, 1, ['JWT'], {}].map(
    (typ) => refused(`typ ${JSON.stringify(typ)}`, (s) => issue(s, {}, { typ })),
  ),
  taken('members of the header that nobody knows', (s) => issue(s, {}, { nonce: 'x', 'https://example.com/a': [1] })),
];
