// Explains which route a request meets, and why: for the registry's /match, its stand-in beside a sidecar, and the command
// `match`. It asks for the verdict as the proxy does (`verdictOf`), so that they cannot disagree, and adds words and
// parameters.
import {
  decidePayment,
  verdictOf,
  type Caller,
  type Policy,
  type RequestJudgement,
  type Rules,
  type PlannedSale,
  type UndeclaredMethods,
  type Verdict,
} from './decide.ts';
import { withoutPasses } from './payment/pass-offers.ts';
import { problem, PROBLEMS, type Problem } from './problem.ts';
import { parsePattern, type Segment } from './routing/pattern.ts';
import { paramsOf } from './routing/route-params.ts';
import { toWire, type Route, type RouteWire } from './routing/route.ts';
import type { Match, Snapshot } from './routing/snapshot.ts';
import type { TargetOptions } from './routing/target.ts';
import { describeSale } from './selling/plan-words.ts';
import { describeAskedPrice } from './selling/price-words.ts';
import { isObserving, type Plans } from './selling/plan.ts';

/** The answer of `GET /v1/protected-routes/match`. `ambiguous`: the proxy would refuse the path. */
type MatchResult = {
  readonly matched: boolean;
  readonly payment_required: boolean;
  readonly ambiguous?: true;
  readonly route: RouteWire | null;
  readonly params: Readonly<Record<string, string>>;
};

export type Explanation = {
  readonly answer: MatchResult;
  /** What would go upstream; undefined if the path is refused, and then `reason` says why. */
  readonly path: string | undefined;
  readonly reason: string;
  /** The verdict on a request that presents nothing, or why the target is refused. */
  readonly verdict: Verdict | Problem;
  /** The plan of the route, and whether it gives anything away for this path; undefined: the route has none. */
  readonly sale: PlannedSale | undefined;
  /** What decides about its requests, and what this one costs, in words; undefined: the route has no plan. */
  readonly decides: string | undefined;
  /** Every route whose pattern matches, the winner first, each with a sentence. */
  readonly considered: readonly { readonly route: Route; readonly because: string }[];
};

/** Rules of the proxy that is asked about. */
export type MatchRules = Pick<Policy, 'undeclaredMethods'> & {
  /** Methods that it lets in. */
  readonly methods: TargetOptions['methods'];
  /** Limit of a request target. */
  readonly targetBytes: number;
  /** Plans by which routes are sold; undefined: they are not known here. */
  readonly plans?: Plans | undefined;
};

export type MatchQuestion = {
  readonly method: string;
  /** `/`-led text: a query is cut off, and bytes that a request target cannot hold are percent-encoded first. */
  readonly path: string;
  readonly rules: MatchRules;
  /** Prices a route. Undefined: who is asked has no receivers, and does not know whether a proxy can price it. */
  readonly offer?: Rules<undefined>['offer'];
  /** Time by which a dry run is judged, in milliseconds since the epoch; left out: no dry run goes on. */
  readonly nowMs?: number;
};

export function matchRoute(snapshot: Snapshot, question: MatchQuestion): MatchResult {
  return answerOf(judge(snapshot, question).judgement);
}

export function explainMatch(snapshot: Snapshot, question: MatchQuestion): Explanation {
  const { judgement, sale } = judge(snapshot, question);
  const answer = answerOf(judgement);
  if ('code' in judgement) {
    const reason = `refused: ${inWords(judgement)}`;
    return { answer, path: undefined, reason, considered: [], verdict: judgement, sale, decides: undefined };
  }
  const { path, match, verdict } = judgement;
  const method = question.method.toUpperCase();
  const winner = routeOf(verdict);
  const considered = [...candidatesOf(snapshot, question, winner)]
    .sort((a, b) => Number(b === winner) - Number(a === winner))
    .map((route) => ({ route, because: becauseOf(route, winner, method) }));
  const decided = reasonOf(verdict, match, question.rules.undeclaredMethods);
  const decides = sale && decidesOf(sale, path, question);
  const reason = decides === undefined ? decided : `${decided}; ${decides}`;
  return { answer, path, reason, considered, verdict, sale, decides };
}

/** Says what decides about a request of a route with a plan, and what it costs. */
function decidesOf(sale: PlannedSale, path: string, { path: asked, nowMs = Infinity }: MatchQuestion): string {
  const mark = asked.indexOf('?');
  const query = mark < 0 ? '' : asked.slice(mark).replace(/#.*$/s, '');
  const price = describeAskedPrice(sale, { path, query });
  return [describeSale(sale, nowMs), ...(price === undefined ? [] : [price])].join('; ');
}

/** A caller whom no route refuses, before a payment: `match` is asked about a method and a path, not about a client. */
const CALLER: Caller = { customerId: 'any', credential: undefined };

/** Stands for the price where it is not known: the route has to be paid all the same. */
const UNPRICED = problem('price_unpayable', 'Which receivers there are is not known here.');

type Judged = { readonly judgement: RequestJudgement | Problem; readonly sale: PlannedSale | undefined };

function judge(snapshot: Snapshot, { method, path, rules, offer, nowMs = Infinity }: MatchQuestion): Judged {
  const { undeclaredMethods, methods, targetBytes, plans } = rules;
  const asked: Rules<undefined> = {
    policy: { undeclaredMethods, preflight: 'answer', v1: false },
    caller: () => CALLER,
    offer: offer ?? (() => UNPRICED),
    plans,
  };
  const judgement = verdictOf(asked, { ...snapshot.paths, methods, limit: targetBytes }, snapshot, {
    ...{ method: method.toUpperCase(), target: toRequestPath(path), host: undefined },
    ...{ preflight: false, request: undefined },
  });
  if ('code' in judgement || judgement.verdict.kind !== 'sell') return { judgement, sale: undefined };
  const { verdict: sale } = judgement;
  if (sale.isSpelled && isObserving(sale.plan, nowMs)) return { judgement, sale };
  const { route, plan } = sale;
  const offered = asked.offer(route);
  const sold = sale.isSpelled || 'code' in offered ? offered : withoutPasses(offered);
  const verdict = decidePayment(asked, { route, offer: sold, plan }, undefined);
  return { judgement: { ...judgement, verdict }, sale };
}

function answerOf(judgement: RequestJudgement | Problem): MatchResult {
  // Whatever is refused is never free, so that it counts as matched.
  if ('code' in judgement) {
    const refused = { matched: true, payment_required: true, route: null, params: {} } as const;
    const { matched, payment_required, ...rest } = refused;
    return judgement.code === 'method_unsupported' ? refused : { matched, payment_required, ambiguous: true, ...rest };
  }
  const { path, verdict } = judgement;
  const route = routeOf(verdict);
  const isFree = verdict.kind === 'pass' || verdict.kind === 'sell';
  return {
    matched: route !== undefined || !isFree,
    payment_required: !isFree,
    route: route ? toWire(route) : null,
    params: route ? paramsOf(route, path) : {},
  };
}

/** All routes whose pattern matches some reading of the path, and the winner. */
function candidatesOf(snapshot: Snapshot, { method, path }: MatchQuestion, winner: Route | undefined): Set<Route> {
  const resolution = snapshot.resolve(method.toUpperCase(), toRequestPath(path));
  const readings = resolution.ok ? [...resolution.keys, ...resolution.names] : [];
  const candidates = new Set(readings.flatMap((key) => snapshot.matcher.findAll(key)));
  return winner ? candidates.add(winner) : candidates;
}

/** Cuts the query and percent-encodes what no client could put into a request target, such as spaces and other letters. */
function toRequestPath(text: string): string {
  const end = text.indexOf('?');
  const path = end < 0 ? text : text.slice(0, end);
  return path.toWellFormed().replace(/[^\x21-\x7e]+/gu, encodeURIComponent);
}

/** The route that a verdict is about. */
function routeOf(verdict: Verdict): Route | undefined {
  switch (verdict.kind) {
    case 'demand':
      return verdict.offer.route;
    case 'pass':
    case 'sell':
    case 'verify':
    case 'refuse':
      return verdict.route;
    case 'answer_preflight':
      return undefined;
    default:
      return verdict satisfies never;
  }
}

function reasonOf(verdict: Verdict, match: Match, undeclaredMethods: UndeclaredMethods): string {
  switch (verdict.kind) {
    case 'pass':
      return {
        unprotected: 'no route matches: free',
        paused: 'the winning route is paused: free',
        undeclared:
          undeclaredMethods === 'forward'
            ? 'only routes of other methods match and undeclared_methods is forward: free'
            : 'only routes of other methods match, and all of them are paused: free',
        preflight: 'a preflight: free',
      }[verdict.because];
    case 'sell':
      return 'a dry run: free';
    case 'answer_preflight':
      return 'a preflight, which is answered here';
    case 'demand':
    case 'verify':
      return costly(match, verdict);
    case 'refuse':
      if (verdict.problem.code === 'method_not_declared')
        return 'only routes of other methods match and undeclared_methods is refuse: 405';
      return verdict.problem === UNPRICED
        ? costly(match, verdict)
        : `${costly(match, verdict)}, and is refused: ${inWords(verdict.problem)}`;
    default:
      return verdict satisfies never;
  }
}

function costly(match: Match, verdict: Verdict): string {
  const required =
    match.kind === 'undeclared'
      ? 'only routes of other methods match and undeclared_methods is pay: the dearest of them applies'
      : 'payment required';
  return routeOf(verdict)?.allowAnonymous === false ? `${required}, of callers with a customer id alone` : required;
}

function inWords(refusal: Problem): string {
  return `${PROBLEMS[refusal.code].status} ${refusal.code}: ${refusal.detail}`;
}

function becauseOf(route: Route, winner: Route | undefined, method: string): string {
  if (route === winner) return route.status === 'paused' ? 'wins, and is paused: costs nothing' : 'wins';
  const covers = route.method === '*' || route.method === method || (method === 'HEAD' && route.method === 'GET');
  if (!covers) return `is for ${route.method}, not ${method}`;
  if (winner && winner.pattern === route.pattern)
    return `same pattern, but ${winner.method} is more exact than ${route.method}`;
  return (
    (winner && lessSpecific(route, winner)) ?? 'is less specific, or cheaper where the path can be read in two ways'
  );
}

const EXACTNESS: Readonly<Record<Segment['kind'], number>> = { literal: 0, param: 1, wildcard: 2 };

/** Names the segment in which `winner` is more specific; undefined if something else decided. */
function lessSpecific(route: Route, winner: Route): string | undefined {
  const [own, others] = [segmentsOf(route), segmentsOf(winner)];
  for (const [index, segment] of own.entries()) {
    const other = others[index];
    if (other === undefined) return undefined;
    const difference = EXACTNESS[segment.kind] - EXACTNESS[other.kind];
    if (difference > 0)
      return `is less specific: segment ${index + 1} is ${inKind(segment)} here and ${inKind(other)} in the route that wins`;
    if (difference < 0) return undefined;
  }
  return undefined;
}

function segmentsOf({ pattern }: Route): readonly Segment[] {
  const parsed = parsePattern(pattern);
  return parsed.ok ? parsed.pattern.segments : [];
}

function inKind(segment: Segment): string {
  if (segment.kind === 'literal') return JSON.stringify(segment.text);
  return segment.kind === 'param' ? 'a parameter' : 'a wildcard';
}
