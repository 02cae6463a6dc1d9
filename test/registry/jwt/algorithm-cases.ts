// Tokens that lie about their algorithm, or that somebody else signed.
import { SECRET } from '../kit.ts';
import { refused, taken, type TokenCase } from './case.ts';
import {
  attackerEc,
  attackerEd,
  attackerRsa,
  ecdsa,
  eddsa,
  encode,
  hmac,
  issuerEc,
  issuerEd,
  issuerRsa,
  join,
  pss,
  rsa,
  thumb,
  type Signer,
} from './forge.ts';
import { goodClaims, issue, ISSUER } from './settings.ts';

const NONE = ['none', 'None', 'NONE', 'nOnE', 'none ', ' none', 'none\u0000', 'nоne'];
const unsigned: Signer = { alg: 'none', sign: () => Buffer.alloc(0) };
const claims = (): string => encode(goodClaims());

export const ALGORITHM_CASES: readonly TokenCase[] = [
  taken('the right key and algorithm', (s) => issue(s)),
  ...NONE.flatMap((alg) => [
    refused(`alg ${JSON.stringify(alg)}, no signature`, (s) => issue(s, {}, { alg }, unsigned)),
    refused(`alg ${JSON.stringify(alg)} over the right signature`, (s) => issue(s, {}, { alg })),
  ]),
  refused('no alg over the right signature', (s) => issue(s, {}, { alg: undefined })),
  ...['', 256, null, true, ['HS256', 'RS256', 'ES256'], { name: 'HS256' }].map((alg) =>
    refused(`alg ${JSON.stringify(alg)} over the right signature`, (s) => issue(s, {}, { alg })),
  ),
  refused('alg in lower case over the right signature', (s) => issue(s, {}, { alg: s.signer.alg.toLowerCase() })),
  refused('alg with a space over the right signature', (s) => issue(s, {}, { alg: `${s.signer.alg} ` })),
  ...(
    [
      ['HS256', hmac(256, 'a secret that the attacker has chosen, long enough')],
      ['HS512', hmac(512, 'a secret that the attacker has chosen, long enough')],
      ['RS256', rsa(256, attackerRsa.privateKey)],
      ['RS512', rsa(512, attackerRsa.privateKey)],
      ['PS256', pss(256, attackerRsa.privateKey)],
      ['ES256', ecdsa(attackerEc.privateKey)],
      ['EdDSA', eddsa(attackerEd.privateKey)],
    ] as const
  ).map(([alg, signer]) => refused(`${alg} by an attacker's key`, (s) => issue(s, {}, {}, signer))),
  refused('the right signature under the name of another family', (s) =>
    issue(s, {}, { alg: s.signer.alg === 'HS256' ? 'RS256' : 'HS256' }),
  ),
  refused('the right signature under the name of another size', (s) =>
    issue(s, {}, { alg: s.signer.alg.replace('256', '512') }),
  ),
  refused('the right signature under EdDSA', (s) => issue(s, {}, { alg: 'EdDSA' })),
  refused('the right signature under ES256K', (s) => issue(s, {}, { alg: 'ES256K' })),
  refused('the right signature under an algorithm that encrypts', (s) => issue(s, {}, { alg: 'dir', enc: 'A128GCM' })),
  ...[0, 1, 2, 3, 4, 5, 6, 7].flatMap((nth) =>
    ([256, 512] as const).map((bits) =>
      refused(
        `HS${bits} with the public key as secret, spelling ${nth + 1}`,
        (s) => issue(s, {}, {}, hmac(bits, s.publicTexts[nth] ?? '')),
        ['public_key', 'jwks_url'],
      ),
    ),
  ),
  refused(
    'HS256 with the whole published key set as secret',
    (s) => issue(s, {}, {}, hmac(256, s.publicTexts.at(-1) ?? '')),
    ['jwks_url'],
  ),
  refused(
    'HS256 with a symmetric key that the set publishes',
    (s) => issue(s, {}, { kid: 'oct-1' }, hmac(256, SECRET)),
    ['jwks_url'],
  ),
  ...['', '\u0000', ISSUER, 'secret', SECRET.slice(0, -1), `${SECRET} `, thumb(SECRET), encode(SECRET)].map(
    (secret, nth) => refused(`HS256 with a guessed secret, ${nth + 1}`, (s) => issue(s, {}, {}, hmac(256, secret))),
  ),
  refused('a signature of the same key over other bytes', (s) => {
    const [header = ''] = issue(s).split('.');
    return `${header}.${claims()}.${s.signer.sign('something else').toString('base64url')}`;
  }),
  taken('HS384 and the right secret', (s) => issue(s, {}, {}, hmac(384, SECRET)), ['secret']),
  taken('HS512 and the right secret', (s) => issue(s, {}, {}, hmac(512, SECRET)), ['secret']),
  taken('PS384 and the configured RSA key', (s) => issue(s, {}, {}, pss(384, issuerRsa.privateKey)), ['public_key']),
  refused('ES256 under a configured RSA key', (s) => issue(s, {}, {}, ecdsa(issuerEc.privateKey)), ['public_key']),
  taken(
    'a second key of the set, by its id and its own algorithm',
    (s) => issue(s, {}, { kid: 'rsa-1' }, rsa(256, issuerRsa.privateKey)),
    ['jwks_url'],
  ),
  ...([rsa(384, issuerRsa.privateKey), rsa(512, issuerRsa.privateKey), pss(256, issuerRsa.privateKey)] as const).map(
    (signer) =>
      refused(`${signer.alg} by a key whose set pins RS256`, (s) => issue(s, {}, { kid: 'rsa-1' }, signer), [
        'jwks_url',
      ]),
  ),
  taken('EdDSA by its key', (s) => issue(s, {}, { kid: 'ed-1' }, eddsa(issuerEd.privateKey)), ['jwks_url']),
  refused(
    'Ed25519 by a key whose set pins EdDSA',
    (s) => issue(s, {}, { kid: 'ed-1', alg: 'Ed25519' }, eddsa(issuerEd.privateKey)),
    ['jwks_url'],
  ),
  refused('the id of one key, the algorithm and signature of another', (s) => issue(s, {}, { kid: 'rsa-1' }), [
    'jwks_url',
  ]),
  refused('alg in claims instead of the header', (s) =>
    join(encode({ typ: 'JWT' }), encode({ ...goodClaims(), alg: s.signer.alg }), s.signer),
  ),
];
