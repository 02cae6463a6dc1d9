// Finds what is sold: the operations that an active route protects and `exclude` does not name. Whether a request costs
// something, and how much, is asked of the same look-up that the proxy uses, so a document never tells another price.
import { parsePattern, type Pattern } from '../routing/pattern.ts';
import type { Route } from '../routing/route.ts';
import { covers, escapeSegment, isExcluded } from './exclusion.ts';
import { METHODS } from './operation.ts';
import type { OwnerOperation } from './owner-document.ts';
import { type Meeting, createTree, SAMPLE } from './operation-tree.ts';

export type SoldOperation = {
  readonly method: string;
  /** A path template of OpenAPI. */
  readonly path: string;
  readonly route: Route;
  /** Operation of the owner's document; undefined if it has none. */
  readonly operation: OwnerOperation | undefined;
};

/**
 * Reasons to leave a route out. `wildcard`: no path template says it, and no operation stands for it. `shadowed`:
 * another route takes its requests. `method`: no document can name it.
 */
export type OmissionReason = 'paused' | 'excluded' | 'unpayable' | 'wildcard' | 'method' | 'shadowed' | 'no_room';
export type OmittedOperation = { readonly method: string; readonly pattern: string; readonly why: OmissionReason };

/** Operations for sale. `leftOut` has the first without one; `total` counts those without room as well. */
export type SaleList = {
  readonly operations: readonly SoldOperation[];
  readonly total: number;
  readonly leftOut: readonly OmittedOperation[];
  /** Number of all routes and operations that were left out, by the reason. */
  readonly leftOutCounts: Readonly<Partial<Record<OmissionReason, number>>>;
};

/** A route as far as it is looked at one by one. `isPayable`: somebody could pay for it. */
export type SaleRoute = Pick<Route, 'id' | 'method' | 'pattern'> & {
  readonly isActive: boolean;
  readonly isPayable: boolean;
};

/** A request that a client could make. */
export type SampleRequest = { readonly method: string; readonly path: string };

/** Collects what is sold in two steps: routes one by one, then what the proxy would ask for some requests. */
export type Sale = {
  readonly add: (route: SaleRoute) => void;
  /** Questions for the look-up, complete after the last route. */
  readonly questions: () => readonly SampleRequest[];
  /** Ends the collection. `winners` has, for each question, the active route that it pays for. */
  readonly close: (winners: readonly (Route | undefined)[]) => SaleList;
};

/** Methods that OpenAPI can say and a client may ask with. */
const SAYABLE: ReadonlySet<string> = new Set([...METHODS, 'OPTIONS']);
/** Methods of a route for any method if no document says more. */
const ANY = ['GET', 'POST'];
/** Operations under their paths, and routes that stand as their patterns: more than a document has room for. */
const MOST_DESCRIBED = 8_000;
const MOST_PLAIN = 3_000;
const MOST_LEFT_OUT = 1_000;

type DescribedOperation = Meeting & { readonly by: string[] };
type PlainRoute = { readonly route: SaleRoute; readonly template: string; readonly sample: string };

export function createSale(operations: readonly OwnerOperation[], exclude: readonly Pattern[]): Sale {
  const tree = createTree(operations);
  /** Operations of the description by method and path. `by` has the routes that could take its requests. */
  const described = new Map<string, DescribedOperation>();
  /** Routes that some operation could stand for. */
  const met: { readonly route: SaleRoute; readonly pattern: Pattern; readonly keys: readonly string[] }[] = [];
  const plain = createPlain();
  const leftOut: OmittedOperation[] = [];
  const leftOutCounts: Partial<Record<OmissionReason, number>> = {};
  const leave = ({ method, pattern }: SaleRoute, why: OmissionReason): void => {
    leftOutCounts[why] = (leftOutCounts[why] ?? 0) + 1;
    if (leftOut.length < MOST_LEFT_OUT) leftOut.push({ method, pattern, why });
  };
  /** A route without an operation stands as its pattern. */
  const leavePlain = (route: SaleRoute, pattern: Pattern): PlainRoute | undefined => {
    const isWild = pattern.segments.some(({ kind }) => kind === 'wildcard');
    if (!isWild && (route.method === '*' || SAYABLE.has(route.method)))
      return { route, template: templateOf(pattern), sample: sampleOf(pattern) };
    leave(route, isWild ? 'wildcard' : 'method');
    return undefined;
  };
  const meet = (route: SaleRoute, pattern: Pattern): readonly string[] => {
    const keys: string[] = [];
    for (const meeting of tree.meet(pattern, route.method)) {
      const key = `${meeting.operation.method} ${meeting.path}`;
      const known = described.get(key);
      if (known !== undefined) known.by.push(route.id);
      else if (described.size < MOST_DESCRIBED) described.set(key, { ...meeting, by: [route.id] });
      else {
        leave(route, 'no_room');
        break;
      }
      keys.push(key);
    }
    return keys;
  };
  let asked: readonly Question[] = [];

  return {
    add: (route) => {
      const parsed = parsePattern(route.pattern);
      if (!parsed.ok) return;
      const { pattern } = parsed;
      if (!route.isActive) leave(route, 'paused');
      else if (!route.isPayable) leave(route, 'unpayable');
      else if (exclude.some((each) => covers(each, pattern))) leave(route, 'excluded');
      else {
        const keys = meet(route, pattern);
        if (keys.length > 0) met.push({ route, pattern, keys });
        else {
          const own = leavePlain(route, pattern);
          if (own !== undefined) plain.add(own);
        }
      }
    },
    questions: () => {
      asked = [
        ...[...described].map(([key, { operation, sample }]) => ({ key, method: operation.method, path: sample })),
        ...met.flatMap(({ route, pattern }) => questionsOf(route, sampleOf(pattern))),
        ...plain.first().flatMap(({ route, sample }) => questionsOf(route, sample)),
      ];
      return asked;
    },
    close: (winners) => {
      const applying = new Map(asked.map(({ key }, index) => [key, winners[index]]));
      for (const { route, pattern, keys } of met) {
        if (keys.some((key) => applying.get(key)?.id === route.id)) continue;
        const own = pattern.segments.some(({ kind }) => kind === 'wildcard') ? undefined : leavePlain(route, pattern);
        if (own === undefined) leave(route, 'shadowed');
        else plain.add(own);
      }
      const sold = [...described].flatMap(([key, each]): (SoldOperation & DescribedOperation)[] => {
        const route = applying.get(key);
        if (route === undefined || !each.by.includes(route.id) || isExcluded(each.sample, exclude)) return [];
        return [{ ...each, method: each.operation.method, route }];
      });
      const ordered = sold.toSorted(
        (a, b) => Number(b.isWhole) - Number(a.isWhole) || a.index - b.index || compare(a.path, b.path),
      );
      const rest = soldAsPatterns(plain.first(), ordered, applying, (route) => leave(route, 'shadowed'));
      const total = ordered.length + rest.length + plain.gone();
      return { operations: [...ordered, ...rest], total, leftOut, leftOutCounts };
    },
  };
}

/** Question for the look-up; `key` names its answer. */
type Question = SampleRequest & { readonly key: string };

function questionsOf(route: SaleRoute, path: string): readonly Question[] {
  return methodsOf(route).map((method) => ({ key: `${route.id} ${method}`, method, path }));
}

function methodsOf({ method }: SaleRoute): readonly string[] {
  return method === '*' ? ANY : [method];
}

/** Collects the first routes by their patterns; the others are counted. */
function createPlain(): {
  readonly add: (each: PlainRoute) => void;
  readonly first: () => readonly PlainRoute[];
  /** Operations of those that are not among the first. */
  readonly gone: () => number;
} {
  let kept: PlainRoute[] = [];
  let gone = 0;
  const order = (): void => {
    kept.sort((a, b) => compare(a.template, b.template) || compare(a.route.method, b.route.method));
    for (const { route } of kept.slice(MOST_PLAIN)) gone += methodsOf(route).length;
    kept = kept.slice(0, MOST_PLAIN);
  };
  return {
    add: (each) => {
      if (kept.push(each) >= 4 * MOST_PLAIN) order();
    },
    first: () => {
      order();
      return kept;
    },
    gone: () => gone,
  };
}

function soldAsPatterns(
  plain: readonly PlainRoute[],
  described: readonly SoldOperation[],
  applying: ReadonlyMap<string, Route | undefined>,
  shadowed: (route: SaleRoute) => void,
): readonly SoldOperation[] {
  // No document has two paths that differ in the names of their parameters alone.
  const paths = new Map(described.map(({ path }) => [shapeOf(path), path]));
  const taken = new Set(described.map(({ method, path }) => `${method} ${path}`));
  return plain.flatMap(({ route, template }) => {
    const shape = shapeOf(template);
    const path = paths.get(shape) ?? template;
    const operations = methodsOf(route).flatMap((method): SoldOperation[] => {
      const winner = applying.get(`${route.id} ${method}`);
      const key = `${method} ${path}`;
      if (winner?.id !== route.id || taken.has(key)) return [];
      taken.add(key);
      return [{ method, path, route: winner, operation: undefined }];
    });
    if (operations.length === 0) shadowed(route);
    else paths.set(shape, path);
    return operations;
  });
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function templateOf({ segments }: Pattern): string {
  return (
    segments
      .map((segment) => (segment.kind === 'literal' ? `/${escapeSegment(segment.text)}` : `/{${segment.name}}`))
      .join('') || '/'
  );
}

function sampleOf({ segments }: Pattern): string {
  return (
    segments.map((segment) => `/${segment.kind === 'literal' ? escapeSegment(segment.text) : SAMPLE}`).join('') || '/'
  );
}

function shapeOf(path: string): string {
  return path.replace(/\{[^{}]*\}/g, '{}');
}
