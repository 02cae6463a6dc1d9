// `match` answers what the proxy would do: held against the verdict that the handler asks for, over random routes, rules
// and targets, and in words where no proxy is asked.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { verdictOf, type Caller, type Policy, type RequestJudgement } from '../../src/domain/decide.ts';
import { explainMatch } from '../../src/domain/explanation.ts';
import { createOffers } from '../../src/domain/payment/offer.ts';
import type { Problem } from '../../src/domain/problem.ts';
import { allowedMethods } from '../../src/domain/routing/method.ts';
import { FULL_FOLDING } from '../../src/domain/routing/profile.ts';
import { toWire, type Route } from '../../src/domain/routing/route.ts';
import { compileSnapshot, type Snapshot } from '../../src/domain/routing/snapshot.ts';
import { RECEIVERS } from '../cases/receivers.ts';
import { route } from '../cases/routes.ts';

const PATHS = { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING } as const;
const METHODS = allowedMethods(['PURGE']);
const LIMIT = 40;
const offer = createOffers(RECEIVERS);

type Asked = { readonly method: string; readonly path: string };

const compile = (routes: readonly Route[]): Snapshot =>
  compileSnapshot({ registryId: 'r', revision: 1, routes }, PATHS);

/** What the handler asks for a request of `caller`. */
function judged(
  snapshot: Snapshot,
  { method, path }: Asked,
  undeclaredMethods: Policy['undeclaredMethods'],
  caller: Caller,
): RequestJudgement | Problem {
  const rules = { policy: { undeclaredMethods, preflight: 'answer', v1: false }, caller: () => caller, offer } as const;
  const options = { ...PATHS, limit: LIMIT, methods: METHODS };
  return verdictOf(rules, options, snapshot, { method, target: path, host: 'h', preflight: false, request: undefined });
}

const explained = (snapshot: Snapshot, asked: Asked, undeclaredMethods: Policy['undeclaredMethods']) =>
  explainMatch(snapshot, { ...asked, rules: { undeclaredMethods, methods: METHODS, targetBytes: LIMIT }, offer });

/** The answer of `match` that belongs to a judgement. */
function expected(judgement: RequestJudgement | Problem): Record<string, unknown> {
  const refused = { matched: true, payment_required: true, route: null };
  if ('code' in judgement) return judgement.code === 'method_unsupported' ? refused : { ...refused, ambiguous: true };
  const { verdict, match } = judgement;
  switch (verdict.kind) {
    case 'pass':
      return {
        matched: verdict.route !== undefined,
        payment_required: false,
        route: verdict.route ? toWire(verdict.route) : null,
      };
    case 'demand':
      return { ...refused, route: toWire(verdict.offer.route) };
    case 'verify':
      return { ...refused, route: toWire(verdict.route) };
    case 'refuse': {
      if (verdict.problem.code === 'method_not_declared') return refused;
      const priced =
        match.kind === 'route' ? match.route : match.kind === 'undeclared' ? match.highestPriced : undefined;
      return { ...refused, route: priced ? toWire(priced) : null };
    }
    case 'answer_preflight':
      throw new Error('nothing here is a preflight');
    case 'sell':
      throw new Error('nothing here is sold by a plan');
    default:
      return verdict satisfies never;
  }
}

const SEGMENTS = fc.constantFrom('a', 'b', 'C', ':x', '{y:int}');
const ROUTE = fc.record({
  method: fc.constantFrom('GET', 'POST', 'HEAD', 'PURGE', '*'),
  segments: fc.array(SEGMENTS, { maxLength: 3 }),
  wildcard: fc.boolean(),
  amount: fc.constantFrom('0.10', '0.20', '0.0000000001'),
  status: fc.constantFrom('active', 'paused'),
  allowAnonymous: fc.boolean(),
  receiverConfigId: fc.constantFrom(null, 'nobody'),
});
const ROUTES = fc
  .uniqueArray(ROUTE, {
    maxLength: 8,
    selector: ({ method, segments, wildcard }) =>
      [method, ...segments.map((each) => (each.length > 1 ? ':' : each.toLowerCase())), wildcard].join('/'),
  })
  .map((rows) =>
    rows.map(({ method, segments, wildcard, amount, ...rest }) => {
      const named = segments.map((each, index) => (each.length > 1 ? `:p${index}` : each));
      return route(`${method} /${[...named, ...(wildcard ? ['*'] : [])].join('/')} ${amount}`, rest);
    }),
  );
const PATH = fc
  .array(
    fc.constantFrom('a', 'b', 'c', '7', 'A', '%61', 'a.json', 'a;x', '..', '%2f', '%zz', '', 'a#', '"', 'long-segment'),
    {
      maxLength: 6,
    },
  )
  .map((parts) => `/${parts.join('/')}`);
const ASKED = fc.record({
  method: fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PURGE', 'OPTIONS', 'TRACE', 'BREW'),
  path: PATH,
});
const CALLER = fc.constantFrom<Caller>(
  { customerId: undefined, credential: undefined },
  { customerId: 'c', credential: undefined },
  { customerId: 'c', credential: { version: 2, value: 'e30=' } },
  { customerId: undefined, credential: { version: 1, value: 'e30=' } },
);

test('behaviour: match says of any request what the proxy decides, whatever routes, rules and caller', () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(
      ROUTES,
      fc.constantFrom('forward', 'pay', 'refuse'),
      fc.array(fc.tuple(ASKED, CALLER), { minLength: 4, maxLength: 12 }),
      (routes, undeclaredMethods, asks) => {
        const snapshot = compile(routes);
        for (const [asked, caller] of asks) {
          const judgement = judged(snapshot, asked, undeclaredMethods, caller);
          const { answer, path } = explained(snapshot, asked, undeclaredMethods);
          const { params: _params, ...told } = answer;
          expect({ asked, undeclaredMethods, ...told }).toEqual({ asked, undeclaredMethods, ...expected(judgement) });
          expect(path).toBe('code' in judgement ? undefined : judgement.path);
          seen.add('code' in judgement ? judgement.code : `${judgement.match.kind} ${judgement.verdict.kind}`);
        }
      },
    ),
    { numRuns: 600 },
  );
  expect([...seen].toSorted()).toEqual([
    ...['method_unsupported', 'none pass', 'route demand', 'route pass', 'route refuse', 'route verify'],
    ...['target_ambiguous', 'target_too_long'],
    ...['undeclared demand', 'undeclared pass', 'undeclared refuse', 'undeclared verify'],
  ]);
});

test.each([
  ['forward', 'POST', '/free/a', false, 'only routes of other methods match and undeclared_methods is forward: free'],
  ['pay', 'POST', '/free/a', false, 'only routes of other methods match, and all of them are paused: free'],
  ['refuse', 'POST', '/free/a', true, 'only routes of other methods match and undeclared_methods is refuse: 405'],
  ['refuse', 'GET', '/free/a', false, 'the winning route is paused: free'],
  [
    ...(['pay', 'POST', '/a', true] as const),
    'only routes of other methods match and undeclared_methods is pay: the dearest of them applies',
  ],
  ['refuse', 'POST', '/a', true, 'only routes of other methods match and undeclared_methods is refuse: 405'],
  ['refuse', 'GET', '/a', true, 'payment required'],
  ['forward', 'GET', '/known', true, 'payment required, of callers with a customer id alone'],
  ['forward', 'GET', '/else', false, 'no route matches: free'],
  [
    ...(['forward', 'GET', '/unpayable', true] as const),
    expect.stringMatching(/^payment required, and is refused: 503 receiver_unknown: .*\.$/) as string,
  ],
  ['forward', 'GET', '/a/../b', true, expect.stringMatching(/^refused: 400 target_ambiguous: .*\.$/) as string],
  [
    ...(['forward', 'GET', `/${'a'.repeat(LIMIT)}`, true] as const),
    'refused: 414 target_too_long: The request target is longer than 40 bytes.',
  ],
  [
    ...(['forward', 'BREW', '/else', true] as const),
    'refused: 501 method_unsupported: This server does not support the request method.',
  ],
] as const)('behaviour: match under undeclared_methods %s says why %s %s costs something: %s', (...row) => {
  const [undeclaredMethods, method, path, costs, why] = row;
  const snapshot = compile([
    route('GET /a'),
    route('GET /free/*', { status: 'paused' }),
    route('GET /known', { allowAnonymous: false }),
    route('GET /unpayable', { receiverConfigId: 'nobody' }),
  ]);
  const { answer, reason } = explained(snapshot, { method, path }, undeclaredMethods);
  expect([answer.payment_required, reason]).toEqual([costs, why]);
});
