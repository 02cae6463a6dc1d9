// Probes one path: what it answers, what paths answer that cannot exist, then every spelling of it, then the first two
// again. Only then is anything judged: an upstream that changed meanwhile (a limit on requests, a body with the time in
// it) is unsteady, not safe.
import { counts, excluding, judge, readBaseline, type Deed, type Doubt, type Sample } from './answers.ts';
import type { ProbeResponse, Ask } from './ask.ts';
import {
  buildOf,
  pathAbove,
  spellings,
  unknownPaths,
  type Canary,
  type CanaryKind,
  type KnownPath,
} from './canaries.ts';
import { forwardedSpellings } from './tollgate.ts';

type CanaryResult = Canary & { readonly deed: Deed };
type MethodDeed = { readonly method: string; readonly status: number | undefined; readonly alike: boolean };

export type PathReport = {
  readonly known: KnownPath;
  /** Response to the first request. */
  readonly first: ProbeResponse;
  readonly unknownStatus: number | undefined;
  readonly told:
    | { readonly ok: true; readonly asked: readonly CanaryResult[]; readonly methods: readonly MethodDeed[] }
    | { readonly ok: false; readonly doubt: Doubt };
};

type PathProbe = {
  readonly ask: Ask;
  readonly host: string;
  /** Further methods that are tried on the known path. */
  readonly methods: readonly string[];
  /** A name that no path of the upstream has. */
  readonly unlikely: () => string;
  /** Questions under way at once. */
  readonly parallel: number;
  readonly progress: (done: number, of: number) => void;
};

const TIMES = [0, 1, 2];
/** Methods without an effect by definition (RFC 9110, section 9.2.1). */
const SAFE_METHODS = ['HEAD', 'OPTIONS'];

export async function probePath(asked: KnownPath, probe: PathProbe): Promise<PathReport> {
  const target = asked.path + asked.query;
  const get = async (asked: string): Promise<Sample> => ({ target: asked, answer: await probe.ask('GET', asked) });
  const once = await get(target);
  const first = once.answer;
  const samples = { known: [once], beside: new Array<Sample>(), far: new Array<Sample>() };
  const compare = async (): Promise<void> => {
    const { beside, far } = unknownPaths(asked, probe.unlikely());
    samples.beside.push(await get(beside));
    samples.far.push(await get(far));
    samples.known.push(await get(target));
  };
  if (first.kind === 'answer') for (const _ of TIMES) await compare();
  const far = samples.far[0]?.answer;
  const report = { known: asked, first, unknownStatus: far?.kind === 'answer' ? far.status : undefined };
  const before = readBaseline(samples.known, samples.beside, samples.far);
  if (!before.ok) return { ...report, told: before };

  const known = { ...asked, parameter: before.baseline.parameter };
  const answered = await askSpellings(known, first.kind === 'answer' ? buildOf(first.body) : undefined, probe, get);
  const above = known.parameter ? [await getAbove(known, get), await getAbove(known, get)] : [];
  await compare();
  const after = readBaseline(samples.known, samples.beside, samples.far);
  if (!after.ok) return { ...report, told: { ok: false, doubt: after.doubt === 'silent' ? 'unsteady' : after.doubt } };
  if (after.baseline.parameter !== known.parameter) return { ...report, told: { ok: false, doubt: 'unsteady' } };
  const baseline = excluding(after.baseline, above);
  const spelled = answered.map(({ kind, sample }) => ({ kind, target: sample.target, deed: judge(sample, baseline) }));
  // Last, because a method that was named may change what the path answers.
  const methods: MethodDeed[] = [];
  for (const method of [...SAFE_METHODS, ...probe.methods]) {
    const answer = await probe.ask(method, target);
    const status = answer.kind === 'answer' ? answer.status : undefined;
    methods.push({ method, status, alike: isAlike(method, { target, answer }, baseline) });
  }
  return { ...report, known, told: { ok: true, asked: spelled, methods } };
}

/** Asks for the path above a parameter, as if the parameter were left empty. */
async function getAbove(known: KnownPath, get: (target: string) => Promise<Sample>): Promise<Sample> {
  const { answer } = await get(pathAbove(known) + known.query);
  return { target: `${pathAbove(known)}/${known.query}`, answer };
}

type CanarySample = { readonly kind: CanaryKind; readonly sample: Sample };

/** Every spelling, and every other one that Tollgate could make of it under some setting. */
async function askSpellings(
  known: KnownPath,
  build: string | undefined,
  { host, parallel, progress }: PathProbe,
  get: (target: string) => Promise<Sample>,
): Promise<CanarySample[]> {
  const canaries = spellings(known, host, build);
  const kinds = new Map(canaries.map(({ target, kind }) => [target, kind]));
  const further = forwardedSpellings([...kinds.keys()], known, host);
  const made = [...further].map(([target, from]) => ({ target, kind: kinds.get(from) ?? 'forms of the target' }));
  return inParallel(
    [...canaries, ...made],
    parallel,
    async ({ kind, target }) => ({ kind, sample: await get(target) }),
    progress,
  );
}

/** OPTIONS has an answer of its own, which servers give for every path; HEAD has no body to compare. */
function isAlike(method: string, sample: Sample, baseline: Parameters<typeof judge>[1]): boolean {
  const { answer } = sample;
  if (answer.kind === 'none') return true;
  if (method === 'HEAD') return answer.status === baseline.status;
  const deed = judge(sample, baseline);
  if (deed.kind === 'redirected') return false;
  const ownAnswer = answer.headers.allow !== undefined || answer.headers['access-control-allow-methods'] !== undefined;
  if (method === 'OPTIONS' && deed.kind !== 'reached' && (ownAnswer || answer.body === '')) return false;
  return counts(deed);
}

/** Runs `run` for every item, at most `places` at once; the results keep the order of the items. */
async function inParallel<T, R>(
  items: readonly T[],
  places: number,
  run: (item: T) => Promise<R>,
  progress: (done: number, of: number) => void,
): Promise<R[]> {
  const results = new Map<T, R>();
  const queue = items.values();
  const work = async (): Promise<void> => {
    for (const item of queue) {
      results.set(item, await run(item));
      progress(results.size, items.length);
    }
  };
  await Promise.all(Array.from({ length: places }, work));
  return items.flatMap((item) => {
    const result = results.get(item);
    return result === undefined ? [] : [result];
  });
}
