// Attacks on prices by what is asked: doubled and folded parameters, through a real proxy to a real upstream that reads each
// request as frameworks of many kinds would. None of them may run more than was paid for.
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeUpPayment, readTerms } from '../support/made-up-payment.ts';
import { codeOf, startPlans, type PlanKit } from './kit.ts';

const PLANS = `selling:
  plans:
    - id: p
      price:
        rules: [{ when: { query.size: [large] }, amount: "0.50" }, { when: { header.x-model: [opus] }, amount: "0.70" }]
        units: { of: query.n, amount: "0.01", max: 1000, missing: 1 }
    - { id: kinds, price: { rules: [{ when: { param.kind: [large] }, amount: "0.50" }] } }
routes:
  - { method: GET, route_pattern: "/gen", amount: "0.10", plan_id: p }
  - { method: GET, route_pattern: "/kinds/:kind", amount: "0.10", plan_id: kinds }
  - { method: GET, route_pattern: "/neighbour", amount: "0.30" }
  - { method: GET, route_pattern: "/:any", amount: "0.20", plan_id: p }
`;

type Reading = { readonly n?: unknown; readonly size?: unknown };
/** A reading of a query; each does what one kind of framework does with names and with what stands twice. */
type Model = (query: string) => Reading;

const decode = (text: string): string => {
  const plain = text
    .replaceAll('+', ' ')
    .replace(/%u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
};
const pairsOf = (query: string, separators: RegExp): [string, string][] =>
  query.split(separators).flatMap((part): [string, string][] => {
    const equals = part.indexOf('=');
    return part === ''
      ? []
      : [[decode(equals < 0 ? part : part.slice(0, equals)), decode(equals < 0 ? '' : part.slice(equals + 1))]];
  });
const collect = (
  pairs: readonly [string, string][],
  name: (raw: string) => string,
  which: 'first' | 'last' | 'joined',
): Reading => {
  const found = new Map<string, string>();
  for (const [raw, value] of pairs) {
    const key = name(raw);
    const earlier = found.get(key);
    if (earlier === undefined || which === 'last') found.set(key, value);
    else if (which === 'joined') found.set(key, `${earlier},${value}`);
  }
  return Object.fromEntries(found);
};
const same = (raw: string): string => raw;
const php = (raw: string): string =>
  raw
    .replace(/^ +/, '')
    .replace(/\0.*$/s, '')
    .replace(/(?<=.)\[.*$/s, '')
    .replace(/[ .]/g, '_');
const lower = (raw: string): string =>
  raw
    .normalize('NFKC')
    .replace(/[\u200b\u00ad\ufeff]/g, '')
    .toLowerCase();
const bound = (raw: string): string => raw.replace(/^[_!]/, '');

const MODELS: Readonly<Record<string, Model>> = {
  url: (query) => Object.fromEntries(new URLSearchParams(query)),
  first: (query) => collect(pairsOf(query, /&/), same, 'first'),
  last: (query) => collect(pairsOf(query, /&/), same, 'last'),
  joined: (query) => collect(pairsOf(query, /&/), same, 'joined'),
  semicolons: (query) => collect(pairsOf(query, /[&;]/), same, 'last'),
  semicolonsFirst: (query) => collect(pairsOf(query, /[&;]/), same, 'first'),
  php: (query) => collect(pairsOf(query, /&/), php, 'last'),
  anyCase: (query) => collect(pairsOf(query, /&/), lower, 'last'),
  anyCaseFirst: (query) => collect(pairsOf(query, /&/), lower, 'first'),
  bound: (query) => collect(pairsOf(query, /&/), bound, 'last'),
  brackets: (query) => collect(pairsOf(query, /&/), (raw) => raw.replace(/(?<=.)\[.*$/s, ''), 'last'),
  dots: (query) => collect(pairsOf(query, /&/), (raw) => raw.split('.')[0] ?? '', 'last'),
  twice: (query) =>
    collect(
      pairsOf(query, /&/).map(([name, value]) => [decode(name), value]),
      same,
      'last',
    ),
};

/** What a framework would run, in hundredths; it takes the number leniently. */
function worth({ n, size }: Reading, model: string | undefined): number {
  const number = Number.parseInt(typeof n === 'string' && n.trim() !== '' ? n : '1', 10);
  const units = Number.isNaN(number) ? 1 : number;
  return (size === 'large' ? 50 : model === 'opus' ? 70 : 10) + units;
}

let kit: PlanKit;
beforeAll(async () => {
  kit = await startPlans(PLANS);
});
afterAll(() => kit.close());

const NAMES = [
  ...[
    'n',
    'N',
    'n[]',
    'n[0]',
    'n[a]',
    'n%5B%5D',
    'n%5b0%5d',
    '%6e',
    '%6E',
    '%256e',
    '+n',
    '%20n',
    'n+',
    'n%00',
    'n%00x',
    'n.',
    'n.x',
  ],
  ...[
    '_n',
    '!n',
    '%EF%BD%8E',
    'n%E2%80%8B',
    '%u006e',
    'n%C2%AD',
    '?n',
    '&amp;n',
    'a;n',
    'a=1;n',
    ';n',
    'n;',
    'n%3B',
    '[n]',
    '%5Bn%5D',
    'n%5B',
  ],
];
const spell = (name: string, word: string): string =>
  name
    .replaceAll(/n(?!d)/g, word)
    .replaceAll('%6e', '%73ize')
    .replaceAll('%6E', '%53IZE');
const CORPUS = [
  ...NAMES.flatMap((name) => [
    `${name}=900`,
    `n=1&${name}=900`,
    `${name}=900&n=1`,
    `n=1;${name}=900`,
    `x=1&${name}=900&n=0`,
    `n=0&size=small&${name}=900`,
  ]),
  ...['n', 'n[]', 'n[0]', '+n', 'a=1;n', '_n', 'n.'].flatMap((name) => [
    `${spell(name, 'size')}=large`,
    `size=small&${spell(name, 'size')}=large`,
    `${spell(name, 'size')}=large&size=small`,
  ]),
  ...[
    'SIZE=large',
    'size=small&SIZE=large',
    '%73ize=large',
    'size=small&%73ize=large',
    'size=%6Carge',
    'size=large%00',
    'size=large+',
  ],
  ...[
    'n=%39%30%30',
    'n=+900',
    'n=900%20',
    'n=9e2',
    'n=0x384',
    'n=0900',
    'n=-1',
    'n=1.5',
    'n=1000',
    'n=1001',
    'n=',
    'n',
    'n=%FF',
    'n=٩٠٠'.replace('٩٠٠', '%D9%A9'),
  ],
];

test('attack: no spelling of a parameter makes any framework run more than was paid for', async () => {
  const cheaper: string[] = [];
  let priced = 0;
  let refused = 0;
  for (const query of CORPUS) {
    const target = `/gen?${query}`;
    const before = kit.upstream.seen.length;
    const asked = await kit.ask(target);
    if (asked.status === 400) {
      expect(codeOf(asked), target).toBe('price_ambiguous');
      refused++;
      continue;
    }
    expect(asked.status, target).toBe(402);
    const terms = readTerms(String(asked.headers['payment-required']));
    const paid = await kit.ask(target, { headers: { 'payment-signature': makeUpPayment(terms, kit.now()) } });
    expect([paid.status, kit.upstream.seen.length], target).toEqual([200, before + 1]);
    priced++;
    const seen = kit.upstream.seen.at(-1)?.url ?? '';
    for (const [name, read] of Object.entries(MODELS))
      if (worth(read(seen.slice(seen.indexOf('?') + 1)), undefined) * 10_000 > Number(terms.amount))
        cheaper.push(`${name} runs ${seen} for ${terms.amount}`);
  }
  expect(cheaper).toEqual([]);
  // The corpus is worth something only if most of it is refused and some of it is not.
  expect([refused > 150, priced >= 4]).toEqual([true, true]);
});

test('attack: the models would run dear requests for a cheap price, were they let through', () => {
  const fooled = Object.entries(MODELS).filter(([, read]) =>
    CORPUS.some((query) => worth(read(query), undefined) > 800 && query.includes('n=1')),
  );
  expect(fooled.map(([name]) => name)).toEqual(Object.keys(MODELS));
});

/** Sends bytes, and tells the status line and the code of the problem. */
function raw(lines: readonly string[]): Promise<string> {
  const { port } = new URL(kit.urlOf('proxy'));
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = '';
  const socket = connect(Number(port), '127.0.0.1', () =>
    socket.write(`${[...lines, 'Host: a', 'Connection: close'].join('\r\n')}\r\n\r\n`, 'latin1'),
  );
  socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
  socket.on('close', () => resolve(text));
  socket.on('error', reject);
  return promise;
}
const outcomeOf = (text: string): string => {
  const code = /"code":"(\w+)"/.exec(text)?.[1];
  return `${text.slice(9, 12)} ${code ?? /"amount":"([\d.]+)"/.exec(text)?.[1] ?? ''}`;
};

test.each([
  [['X-Model: opus'], '402 0.71'],
  [['x-MODEL:   opus  '], '402 0.71'],
  [['X-Model: haiku', 'X-Model: opus'], '400 price_ambiguous'],
  [['X-Model: opus', 'X-Model: opus'], '400 price_ambiguous'],
  [['X_Model: opus'], '400 price_ambiguous'],
  [['X.Model: opus', 'X-Model: haiku'], '400 price_ambiguous'],
  [['X-Model: opus\xff'], '400 price_ambiguous'],
  [[`X-Model: ${'o'.repeat(257)}`], '400 price_ambiguous'],
])('attack: the headers %j cost or are refused: %s', async (headers, outcome) => {
  expect(outcomeOf(await raw(['GET /gen HTTP/1.1', ...headers]))).toBe(outcome);
});

test('attack: a header that makes a price cannot be taken away by Connection, which the API would not get', async () => {
  const { port } = new URL(kit.urlOf('proxy'));
  const lines = ['GET /gen HTTP/1.1', 'X-Model: haiku', 'Connection: x-model, close'];
  const { promise, resolve } = Promise.withResolvers<string>();
  let text = '';
  const socket = connect(Number(port), '127.0.0.1', () =>
    socket.write(`${[...lines, 'Host: a'].join('\r\n')}\r\n\r\n`),
  );
  socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
  socket.on('close', () => resolve(text));
  expect(outcomeOf(await promise)).toBe('400 price_ambiguous');
});

test('behaviour: a header that a price reads goes upstream once, as it was read', async () => {
  const paid = await kit.pay('/gen?n=2', { headers: { 'X-Model': 'opus' } });
  expect([paid.status, kit.told()['tollgate-amount']]).toEqual([200, '0.72']);
  const names = kit.upstream.seen.at(-1)?.rawHeaders ?? [];
  expect(names.flatMap((name, i) => (name.toLowerCase() === 'x-model' ? [names[i + 1]] : []))).toEqual(['opus']);
});

test.each([
  ['/kinds/large', '402 0.50'],
  ['/kinds/small', '402 0.10'],
  ['/kinds/large.json', '400 price_ambiguous'],
  ['/kinds/large;v=1', '400 price_ambiguous'],
  ['/kinds/large%3Bv=1', '400 price_ambiguous'],
  ['/kinds/large%20', '400 price_ambiguous'],
  ['/kinds/large&x', '400 price_ambiguous'],
  ['/kinds/large,small', '400 price_ambiguous'],
  ['/kinds/gpt-4.1', '402 0.10'],
])('attack: the parameter of the path %s costs or is refused: %s', async (target, outcome) => {
  expect(outcomeOf(await raw([`GET ${target} HTTP/1.1`]))).toBe(outcome);
});

test('attack: a path that could mean another route costs the most that its plan can ask', async () => {
  // The plan of /:any can ask for 0.70 and a thousand units.
  expect(outcomeOf(await raw(['GET /neighbour%3Bx?n=0 HTTP/1.1']))).toBe('402 10.70');
  expect(outcomeOf(await raw(['GET /other?n=0 HTTP/1.1']))).toBe('402 0.20');
});
