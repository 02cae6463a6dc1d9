// Answers "which route applies, and why": the registry's /match and the `match` command. It calls the look-up that the
// proxy uses, so that the three cannot disagree. It only adds words and parameters.
import { parsePattern } from '../routing/pattern.ts';
import { toWire, type Route, type RouteWire } from '../routing/route.ts';
import type { Match, Snapshot } from '../routing/snapshot.ts';

export type UndeclaredMethods = 'forward' | 'pay' | 'refuse';

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
  /** Path that would go upstream; undefined if it is refused, and then `reason` says why. */
  readonly path: string | undefined;
  readonly reason: string;
  /** Every route whose pattern matches, the winner first, each with a sentence. */
  readonly considered: readonly { readonly route: Route; readonly because: string }[];
};

type MatchQuestion = { readonly method: string; readonly path: string; readonly undeclared: UndeclaredMethods };

export function matchRoute(snapshot: Snapshot, question: MatchQuestion): MatchResult {
  return explainMatch(snapshot, question).answer;
}

/** `path` is `/`-led text: a query is cut off, and bytes that a request target cannot hold are percent-encoded first. */
export function explainMatch(snapshot: Snapshot, { method, path, undeclared }: MatchQuestion): Explanation {
  const resolution = snapshot.resolve(method.toUpperCase(), toRequestPath(path));
  if (!resolution.ok) {
    const answer = { matched: true, payment_required: true, ambiguous: true, route: null, params: {} } as const;
    return { answer, path: undefined, reason: `refused: ${resolution.reason}`, considered: [] };
  }
  const { match } = resolution;
  const winner = winnerOf(match, undeclared);
  const candidates = new Set([...resolution.keys, ...resolution.names].flatMap((key) => snapshot.matcher.findAll(key)));
  if (winner) candidates.add(winner);
  const considered = [...candidates]
    .sort((a, b) => Number(b === winner) - Number(a === winner))
    .map((route) => ({ route, because: becauseOf(route, winner, method.toUpperCase()) }));
  const refused = match.kind === 'undeclared' && undeclared === 'refuse';
  return {
    answer: {
      matched: winner !== undefined || refused,
      payment_required: winner?.status === 'active' || refused,
      route: winner ? toWire(winner) : null,
      params: winner ? paramsOf(winner, resolution.path) : {},
    },
    path: resolution.path,
    reason: reasonOf(match, undeclared),
    considered,
  };
}

/** Cuts the query and percent-encodes what no client could put into a request target, such as spaces and other letters. */
function toRequestPath(text: string): string {
  const end = text.indexOf('?');
  const path = end < 0 ? text : text.slice(0, end);
  return path.toWellFormed().replace(/[^\x21-\x7e]+/gu, encodeURIComponent);
}

function winnerOf(match: Match, undeclared: UndeclaredMethods): Route | undefined {
  switch (match.kind) {
    case 'route':
      return match.route;
    case 'undeclared':
      return undeclared === 'pay' ? match.highestPriced : undefined;
    case 'none':
      return undefined;
    default:
      return match satisfies never;
  }
}

function reasonOf(match: Match, undeclared: UndeclaredMethods): string {
  switch (match.kind) {
    case 'route':
      return match.route.status === 'paused' ? 'the winning route is paused: free' : 'payment required';
    case 'undeclared':
      return {
        forward: 'only routes of other methods match and undeclared_methods is forward: free',
        pay: 'only routes of other methods match and undeclared_methods is pay: the dearest of them applies',
        refuse: 'only routes of other methods match and undeclared_methods is refuse: 405',
      }[undeclared];
    case 'none':
      return 'no route matches: free';
    default:
      return match satisfies never;
  }
}

function becauseOf(route: Route, winner: Route | undefined, method: string): string {
  if (route === winner) return route.status === 'paused' ? 'wins, and is paused: costs nothing' : 'wins';
  const covers = route.method === '*' || route.method === method || (method === 'HEAD' && route.method === 'GET');
  if (!covers) return `is for ${route.method}, not ${method}`;
  if (winner && winner.pattern === route.pattern)
    return `same pattern, but ${winner.method} is more exact than ${route.method}`;
  return 'is less specific, or cheaper where the path can be read in two ways';
}

/** Values of the pattern's parameters, decoded; a trailing wildcard's value is the rest of the path, maybe empty. */
function paramsOf(route: Route, path: string): Record<string, string> {
  const parsed = parsePattern(route.pattern);
  if (!parsed.ok) return {};
  const parts = path.split('/').filter((part) => part !== '');
  const entries = parsed.pattern.segments.flatMap((segment, index): [string, string][] => {
    switch (segment.kind) {
      case 'literal':
        return [];
      case 'param':
        return [[segment.name, decode(parts[index] ?? '')]];
      case 'wildcard':
        return [[segment.name, parts.slice(index).map(decode).join('/')]];
      default:
        return segment satisfies never;
    }
  });
  return Object.fromEntries(entries);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
