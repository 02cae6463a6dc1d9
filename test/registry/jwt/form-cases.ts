// Tokens that are not written as tokens are: other parts, other alphabets, other JSON, signatures that were touched.
import { refused, taken, type TokenCase } from './case.ts';
import { ecdsaDer, encode, issuerEc, join, number32, P256_ORDER, raw, withHighS } from './forge.ts';
import { goodClaims, issue, type Setting } from './settings.ts';

type Parts = readonly [header: string, claims: string, signature: string];
const parts = (token: string): Parts => {
  const [header = '', claims = '', signature = ''] = token.split('.');
  return [header, claims, signature];
};
/** The right token with its signature's bytes changed. */
const resigned = (s: Setting, change: (signature: Buffer) => Buffer): string => {
  const [header, claims, signature] = parts(issue(s));
  return `${header}.${claims}.${change(Buffer.from(signature, 'base64url')).toString('base64url')}`;
};
const flip = (bytes: Buffer, at: number): Buffer => {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(copy.readUInt8(at) ^ 1, at);
  return copy;
};
const headerOf = (s: Setting): string => encode({ alg: s.signer.alg, ...s.header });
const claimsText = (): string => JSON.stringify(goodClaims());
/** Signed claims as text or bytes of any kind. */
const claiming = (s: Setting, claims: string | Buffer): string => join(headerOf(s), raw(claims), s.signer);
const heading = (s: Setting, header: string | Buffer): string => join(raw(header), raw(claimsText()), s.signer);

/** A right token whose signature has a character that the other base64 alphabet writes differently. */
const withSpecial = (s: Setting): Parts => {
  for (let nth = 0; ; nth++) {
    const token = parts(issue(s, { nth }));
    if (/[-_]/.test(token[2])) return token;
  }
};
/** The last character with another leftover bit: the same bytes in another spelling. */
const respelled = (s: Setting): string => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const [header, claims, signature] = parts(issue(s));
  const last = alphabet.indexOf(signature.at(-1) ?? '');
  return `${header}.${claims}.${signature.slice(0, -1)}${alphabet[last ^ 1]}`;
};
/** Characters of the largest token that is taken. */
const MAX_LENGTH = 8192;
const EC: readonly Setting['name'][] = ['jwks_url'];

export const FORM_CASES: readonly TokenCase[] = [
  refused('a dot at the end', (s) => `${issue(s)}.`),
  refused('a dot at the front', (s) => `.${issue(s)}`),
  refused('two dots between the parts', (s) => issue(s).replace('.', '..')),
  refused('four parts', (s) => `${issue(s)}.${raw('x')}`),
  refused('two parts', (s) => parts(issue(s)).slice(0, 2).join('.')),
  refused('one part', (s) => parts(issue(s))[0]),
  refused('nothing but dots', () => '..'),
  refused(
    'an encrypted token',
    (s) => `${encode({ alg: 'dir', enc: 'A256GCM' })}..${raw('iv')}.${headerOf(s)}.${raw('tag')}`,
  ),
  refused('JSON serialization', (s) => {
    const [header, payload, signature] = parts(issue(s));
    return JSON.stringify({ protected: header, payload, signature });
  }),
  refused('a token inside a token', (s) =>
    join(encode({ alg: s.signer.alg, ...s.header, cty: 'JWT' }), raw(issue(s)), s.signer),
  ),
  refused('no header', (s) => issue(s).replace(/^[^.]+/, '')),
  refused('no claims', (s) => issue(s).replace(/\.[^.]+\./, '..')),
  refused('no signature', (s) => issue(s).replace(/[^.]+$/, '')),

  refused('padding behind the signature', (s) => `${issue(s)}==`),
  refused('padding behind the header', (s) => issue(s).replace('.', '=.')),
  refused('the other base64 alphabet', (s) => {
    const [header, claims, signature] = withSpecial(s);
    return `${header}.${claims}.${signature.replaceAll('-', '+').replaceAll('_', '/')}`;
  }),
  taken('the right alphabet of the same', (s) => withSpecial(s).join('.')),
  refused('bits left over behind the last byte', respelled),
  refused('a percent-encoded dot', (s) => issue(s).replace('.', '%2E')),
  refused('a comma behind it', (s) => `${issue(s)},`),
  refused('quotes around it', (s) => `"${issue(s)}"`),
  { name: 'a space inside', token: (s) => issue(s).replace('.', '. '), verdict: 'unread' },
  { name: 'a tab inside', token: (s) => issue(s).replace('.', '.\t'), verdict: 'unread' },
  { name: 'a letter beyond ASCII inside', token: (s) => issue(s).replace('.', 'é.'), verdict: 'unread' },

  refused('a signature without its last byte', (s) => resigned(s, (bytes) => bytes.subarray(0, -1))),
  refused('a signature without its first byte', (s) => resigned(s, (bytes) => bytes.subarray(1))),
  refused('half a signature', (s) => resigned(s, (bytes) => bytes.subarray(0, bytes.length / 2))),
  refused('a signature of one byte', (s) => resigned(s, (bytes) => bytes.subarray(0, 1))),
  refused('a signature with a byte more', (s) => resigned(s, (bytes) => Buffer.concat([bytes, Buffer.alloc(1)]))),
  refused('a signature twice', (s) => resigned(s, (bytes) => Buffer.concat([bytes, bytes]))),
  refused('a signature with its first bit changed', (s) => resigned(s, (bytes) => flip(bytes, 0))),
  refused('a signature with its last bit changed', (s) => resigned(s, (bytes) => flip(bytes, bytes.length - 1))),
  refused('a signature of zeros', (s) => resigned(s, (bytes) => Buffer.alloc(bytes.length))),
  refused('a signature of ones', (s) => resigned(s, (bytes) => Buffer.alloc(bytes.length, 0xff))),
  refused('a signature of the number one', (s) =>
    resigned(s, (bytes) => flip(Buffer.alloc(bytes.length), bytes.length - 1)),
  ),
  refused('the signature of another token', (s) => {
    const [header, claims] = parts(issue(s));
    return `${header}.${claims}.${parts(issue(s, { sub: 'bob' }))[2]}`;
  }),
  refused('other claims under the signature', (s) =>
    issue(s).replace(/\.[^.]+\./, `.${raw(claimsText().replace('ann', 'root'))}.`),
  ),
  refused('another header over the signature', (s) => issue(s).replace(/^[^.]+/, encode({ alg: s.signer.alg, x: 1 }))),
  refused('ECDSA with r = 0 and s = 0', (s) => resigned(s, () => Buffer.alloc(64)), EC),
  refused('ECDSA with r = 0', (s) => resigned(s, (bytes) => Buffer.concat([Buffer.alloc(32), bytes.subarray(32)])), EC),
  refused(
    'ECDSA with s = 0',
    (s) => resigned(s, (bytes) => Buffer.concat([bytes.subarray(0, 32), Buffer.alloc(32)])),
    EC,
  ),
  refused('ECDSA with r = s = the order', (s) => resigned(s, () => Buffer.concat([P256_ORDER, P256_ORDER])), EC),
  refused('ECDSA with r = s = 1', (s) => resigned(s, () => Buffer.concat([number32(1n), number32(1n)])), EC),
  refused('ECDSA in DER', (s) => issue(s, {}, {}, ecdsaDer(issuerEc.privateKey)), EC),
  taken('ECDSA with a high s, which is as valid', (s) => resigned(s, withHighS), EC),

  ...[
    '[]',
    '"x"',
    'null',
    '1',
    '',
    '{',
    `[${claimsText()}]`,
    `${claimsText()} x`,
    `${claimsText()}{}`,
    `{'exp':1}`,
  ].map((text) => refused(`claims that are ${JSON.stringify(text)}`, (s) => claiming(s, text))),
  refused('claims with a comma too many', (s) => claiming(s, claimsText().replace('}', ',}'))),
  refused('claims with a comment', (s) => claiming(s, claimsText().replace('{', '{/**/'))),
  refused('claims with NaN', (s) => claiming(s, claimsText().replace('{', '{"x":NaN,'))),
  refused('claims behind a byte order mark', (s) => claiming(s, `\ufeff${claimsText()}`)),
  refused('claims that are not UTF-8', (s) =>
    claiming(
      s,
      Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xff, 0xfe]), Buffer.from(`",${claimsText().slice(1)}`)]),
    ),
  ),
  refused('claims in UTF-16', (s) => claiming(s, Buffer.from(claimsText(), 'utf16le'))),
  taken('claims with white space', (s) => claiming(s, ` ${JSON.stringify(goodClaims(), null, '\t')}\r\n`)),
  ...['[]', 'null', '"HS256"', '', '{'].map((text) =>
    refused(`a header that is ${text || 'nothing'}`, (s) => heading(s, text)),
  ),
  refused('alg twice in the header', (s) =>
    heading(s, JSON.stringify({ ...s.header }).replace('{', `{"alg":"none","alg":"${s.signer.alg}",`)),
  ),
  refused('kid twice in the header', (s) => heading(s, `{"alg":"${s.signer.alg}","kid":"x","kid":"ec-1"}`)),
  refused('a header behind a byte order mark', (s) =>
    heading(s, `\ufeff${JSON.stringify({ alg: s.signer.alg, ...s.header })}`),
  ),

  taken(`${MAX_LENGTH} characters`, (s) => sized(s, MAX_LENGTH)),
  refused(`${MAX_LENGTH + 1} characters`, (s) => sized(s, MAX_LENGTH + 1)),
  refused('12,000 characters', (s) => sized(s, 12_000)),
];

/** A right token of exactly so many characters. Base64 makes no length of 4n+1, so the header gives what is missing. */
function sized(s: Setting, length: number): string {
  for (let spare = 0; spare < 4; spare++) {
    const header = { pad: 'x'.repeat(spare) };
    const bare = issue(s, { pad: '' }, header).length;
    const about = Math.floor(((length - bare) * 3) / 4);
    for (let pad = about - 3; pad <= about + 3; pad++) {
      const token = issue(s, { pad: 'x'.repeat(pad) }, header);
      if (token.length === length) return token;
    }
  }
  throw new Error(`no token has ${length} characters`);
}
