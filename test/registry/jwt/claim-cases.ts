// Claims at and over the edge of their time, of other types, for somebody else. The clock of the registry stands at NOW
// and five seconds of difference are forgiven.
import { refused, taken, type TokenCase } from './case.ts';
import { encode, join, raw } from './forge.ts';
import { goodClaims, issue, NOW, type Setting } from './settings.ts';

/** Claims written by hand behind the good ones, for numbers and names that JSON.stringify does not write. */
function withText(setting: Setting, without: string, text: string): string {
  const { [without]: _left, ...rest } = goodClaims();
  const head = encode({ alg: setting.signer.alg, ...setting.header });
  return join(head, raw(JSON.stringify(rest).replace(/\}$/, `,${text}}`)), setting.signer);
}

const EDGES: readonly (readonly [string, number, 'taken' | 'refused'])[] = [
  ['exp', NOW + 1, 'taken'],
  ['exp', NOW, 'taken'],
  ['exp', NOW - 4, 'taken'],
  ['exp', NOW - 4.5, 'taken'],
  ['exp', NOW - 5, 'refused'],
  ['exp', NOW - 6, 'refused'],
  ['exp', NOW + 0.5, 'taken'],
  ['exp', 0, 'refused'],
  ['exp', -1, 'refused'],
  ['exp', -NOW, 'refused'],
  ['exp', 253_402_300_799, 'taken'],
  ['exp', 253_402_300_800, 'refused'],
  ['exp', Number.MAX_SAFE_INTEGER, 'refused'],
  ['exp', 1e300, 'refused'],
  ['exp', NOW * 1000, 'refused'],
  ['nbf', NOW, 'taken'],
  ['nbf', NOW + 4, 'taken'],
  ['nbf', NOW + 5, 'taken'],
  ['nbf', NOW + 6, 'refused'],
  ['nbf', NOW + 86_400, 'refused'],
  ['nbf', -1, 'taken'],
  ['iat', NOW + 5, 'taken'],
  ['iat', NOW + 6, 'refused'],
  ['iat', NOW + 86_400, 'refused'],
  ['iat', 0, 'taken'],
];
const ODD_TIMES = ['1800000060', '', null, true, [NOW + 60], { value: NOW + 60 }, '2027-01-15T08:01:00Z'];

export const CLAIM_CASES: readonly TokenCase[] = [
  ...EDGES.map(([name, at, verdict]): TokenCase => {
    const from = Math.abs(at - NOW) < 100_000 ? `now${at < NOW ? '' : '+'}${at - NOW}` : String(at);
    return { name: `${name} ${from} s`, token: (s) => issue(s, { [name]: at }), verdict };
  }),
  refused('no exp', (s) => issue(s, { exp: undefined })),
  ...['exp', 'nbf', 'iat'].flatMap((name) =>
    ODD_TIMES.map((value) => refused(`${name} ${JSON.stringify(value)}`, (s) => issue(s, { [name]: value }))),
  ),
  ...['1e999', '-1e999', '1e400', '99999999999999999999999'].map((text) =>
    refused(`exp ${text}`, (s) => withText(s, 'exp', `"exp":${text}`)),
  ),
  taken('exp 1.80000006e9', (s) => withText(s, 'exp', '"exp":1.80000006e9')),

  ...['tollgate.evil', 'Tollgate', 'tollgate/', ' tollgate', 'tollgate\u0000', '', null, 1, ['tollgate'], {}].map(
    (iss) => refused(`iss ${JSON.stringify(iss)}`, (s) => issue(s, { iss })),
  ),
  refused('no iss', (s) => issue(s, { iss: undefined })),
  ...[
    'sdk',
    'Dashboard',
    'dashboard ',
    'dashboard sdk',
    '',
    '*',
    null,
    1,
    [],
    ['sdk'],
    [['dashboard']],
    [null],
    {},
    { dashboard: true },
    { 0: 'dashboard', length: 1 },
  ].map((aud) => refused(`aud ${JSON.stringify(aud)}`, (s) => issue(s, { aud }))),
  refused('no aud', (s) => issue(s, { aud: undefined })),
  taken('aud a list with ours', (s) => issue(s, { aud: ['sdk', 'dashboard'] })),

  ...[5, null, true, ['ann'], {}].map((sub) => refused(`sub ${JSON.stringify(sub)}`, (s) => issue(s, { sub }))),
  taken('no sub', (s) => issue(s, { sub: undefined })),
  taken('a sub that would break a log line', (s) => issue(s, { sub: 'ann"}\r\n{"level":"error","msg":"x' })),

  refused('good claims inside __proto__', (s) =>
    join(encode({ alg: s.signer.alg, ...s.header }), raw(`{"__proto__":${JSON.stringify(goodClaims())}}`), s.signer),
  ),
  refused('exp inside __proto__', (s) => withText(s, 'exp', `"__proto__":{"exp":${NOW + 60}}`)),
  refused('exp inside constructor.prototype', (s) =>
    withText(s, 'exp', `"constructor":{"prototype":{"exp":${NOW + 60}}}`),
  ),
  refused('an algorithm inside __proto__ of the header', (s) =>
    join(raw(`{"typ":"JWT","__proto__":{"alg":"${s.signer.alg}"}}`), encode(goodClaims()), s.signer),
  ),
  taken('__proto__ beside good claims changes nothing', (s) =>
    withText(s, 'none', '"__proto__":{"admin":true,"polluted":"yes"}'),
  ),
  refused('exp twice, the later one good', (s) => withText(s, 'exp', `"exp":${NOW - 100},"exp":${NOW + 60}`)),
  refused('exp twice, the earlier one good', (s) => withText(s, 'exp', `"exp":${NOW + 60},"exp":${NOW - 100}`)),
  refused('exp twice, once with an escape', (s) => withText(s, 'exp', `"\\u0065xp":${NOW - 100},"exp":${NOW + 60}`)),
  refused('aud twice', (s) => withText(s, 'aud', '"aud":"sdk","aud":"dashboard"')),
  refused('a member twice, three levels down', (s) => withText(s, 'none', '"a":[{"b":{"c":1,"c":2}}]')),
  taken('a text that looks like a member', (s) => withText(s, 'none', '"a":"\\"exp\\":1,\\"exp\\":2","b":["x:",":"]')),
  taken('claims nested 1,500 deep', (s) => withText(s, 'none', `"a":${'['.repeat(1500)}${']'.repeat(1500)}`)),
  taken('400 claims', (s) => issue(s, Object.fromEntries(Array.from({ length: 400 }, (_, nth) => [`c${nth}`, nth])))),
];
