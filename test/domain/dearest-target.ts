// Looks for the target that costs most to answer: a hill climb over spellings, with a seed and a number of evaluations.
// Cost is counted in letters that string functions were given and places that expressions found in them, which is the same
// on every machine, knows nothing of how paths are read, and works for any revision:
// `node test/domain/dearest-target.ts [ROOT]` prints what it finds as JSON.
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as profileModule from '../../src/domain/routing/profile.ts';
import type * as snapshotModule from '../../src/domain/routing/snapshot.ts';
import { createRng, type Rng } from '../support/random.ts';
import { route } from '../cases/routes.ts';

export type Dearest = { readonly steps: number; readonly target: string };
type Resolve = (target: string) => boolean;

const LIMIT = 8192;
const CLIMBS = 8;
/** Weight of a letter that a table of Unicode is asked for. */
const BY_TABLE = 10;
/** Weight of a place that an expression finds, beside its letters. */
const BY_MATCH = 50;
const PIECES = [
  ...['/', '//', '.', ',', ';', '+', '&', '-', '_', '~', '@@', '%20', '%2B', '%26', '%3B', '%3F', '%23', '%2C', '%40'],
  ...['a', 'B', 'v1', 'export', '/index', '.php/', '.json', '.json/', '/_next/data/x/', '.segments/', '__data.json'],
  ...['%C3%A9', '%E4%BA%AC', '%EF%B7%BA', '%EF%BD%85', '%C4%B0', '%C3%9F', '%E2%84%AA', '%C2%AD', '%CC%80', '%CC%96'],
  ...['a;b', 'a+b', 'x.y/', '/v1/export', '/v1/reports/', '/v1/files/', '/v1/a/b/c'],
];
const PATTERNS = [
  ...['/v1/export', '/v1/daily_report', '/v1/reports/:id', '/v1/files/*', '/v1/:a/:b/d', '/:x/:y', '/:x/:y/:z/w'],
  ...['/v1/Kiss/Data', '/v1/reports/open', '/:a/b/:c/d/*'],
];

export async function loadResolve(root: string): Promise<Resolve> {
  const from = (name: string): string => pathToFileURL(path.join(root, 'src/domain/routing', name)).href;
  const { compileSnapshot }: typeof snapshotModule = await import(from('snapshot.ts'));
  const { profileFolding }: typeof profileModule = await import(from('profile.ts'));
  const routes = PATTERNS.map((pattern, index) =>
    route('GET', {
      id: `route-${index}`,
      pattern,
      amount: `0.${index + 1}`,
      status: pattern.endsWith('open') ? 'paused' : 'active',
    }),
  );
  const paths = { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: profileFolding('unknown') } as const;
  const snapshot = compileSnapshot({ registryId: 'dearest', revision: 1, routes }, paths);
  return (target) => snapshot.resolve('GET', target).ok;
}

/** `evaluations` in all, spread over several climbs from nothing. */
export function findDearest(resolve: Resolve, seed: number, evaluations: number): Dearest {
  let found: Dearest = { steps: 0, target: '/' };
  for (let climb = 0; climb < CLIMBS; climb++) {
    const rng = createRng(seed, climb);
    let best = { steps: 0, target: '/' };
    for (let i = 0; i < evaluations / CLIMBS; i++) {
      const target = mutate(best.target, rng);
      const { steps, answered } = count(() => resolve(target));
      if (answered && steps >= best.steps) best = { steps, target };
    }
    if (best.steps > found.steps) found = best;
  }
  return found;
}

function mutate(target: string, rng: Rng): string {
  // Between the escapes, never inside one.
  const at = boundary(target, 1 + rng.int(target.length));
  switch (rng.int(4)) {
    case 0:
      return cut(target.slice(0, at) + rng.pick(PIECES) + target.slice(at));
    case 1:
      return cut(target.slice(0, at) + rng.pick(PIECES).repeat(1 + rng.int(400)) + target.slice(at));
    case 2:
      return cut(target.slice(0, boundary(target, Math.max(1, at - rng.int(400)))) + target.slice(at));
    default:
      return cut(target + target.slice(at));
  }
}

function boundary(target: string, at: number): number {
  for (const back of [1, 2]) if (target[at - back] === '%') return Math.max(1, at - back);
  return at;
}

function cut(target: string): string {
  return target.slice(0, boundary(target, Math.min(target.length, LIMIT)));
}

type Cost = (text: string, given: readonly unknown[], result: unknown) => number;

const lengthOf = (value: unknown): number => (typeof value === 'string' ? value.length : 0);
const throughout: Cost = (text, _, result) => text.length + lengthOf(result);
/** From where it starts to where it finds something. */
const scanning: Cost = (text, [, from], result) =>
  Math.max(1, (typeof result === 'number' && result >= 0 ? result : text.length) - Number(from ?? 0));
const byArgument: Cost = (_, [argument]) => lengthOf(argument);

/** An expression that is global stops at every place. */
const matching: Cost = (text, given, result) => {
  const [pattern] = given;
  const found = pattern instanceof RegExp && pattern.global ? (text.match(pattern)?.length ?? 0) : 0;
  return throughout(text, given, result) + BY_MATCH * found;
};

const COSTS: Readonly<Record<string, Cost>> = {
  slice: () => 1,
  charCodeAt: () => 1,
  startsWith: byArgument,
  endsWith: byArgument,
  indexOf: scanning,
  includes: scanning,
  lastIndexOf: scanning,
  search: throughout,
  split: throughout,
  replace: matching,
  replaceAll: matching,
  trim: throughout,
  toLowerCase: throughout,
  toUpperCase: throughout,
  normalize: (text, given, result) => BY_TABLE * throughout(text, given, result),
};

/** `run` with every function that reads a string counted. */
function count(run: () => boolean): { steps: number; answered: boolean } {
  let steps = 0;
  // What the engine calls inside one that is counted is counted with it.
  let depth = 0;
  const restore: (() => void)[] = [];
  const wrap = (holder: object, name: string, cost: Cost): void => {
    const original: unknown = Reflect.get(holder, name);
    if (typeof original !== 'function') throw new Error(`${name} is no function`);
    const put = (value: unknown): void =>
      void Object.defineProperty(holder, name, { value, configurable: true, writable: true });
    put(function (this: unknown, ...given: unknown[]): unknown {
      depth++;
      try {
        const result: unknown = Reflect.apply(original, this, given);
        if (depth === 1) steps += cost(typeof this === 'string' ? this : '', given, result);
        return result;
      } finally {
        depth--;
      }
    });
    restore.push(() => put(original));
  };
  for (const [name, cost] of Object.entries(COSTS)) wrap(String.prototype, name, cost);
  for (const name of ['test', 'exec']) wrap(RegExp.prototype, name, byArgument);
  wrap(globalThis, 'decodeURIComponent', byArgument);
  try {
    const answered = run();
    return { steps, answered };
  } finally {
    for (const put of restore) put();
  }
}

if (process.argv[1] === import.meta.filename) {
  const [, , root = path.resolve(import.meta.dirname, '../..'), evaluations = '1200', seed = '1'] = process.argv;
  const resolve = await loadResolve(root);
  console.log(JSON.stringify(findDearest(resolve, Number(seed), Number(evaluations))));
}
