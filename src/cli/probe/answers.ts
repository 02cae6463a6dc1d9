// Says whether an answer is that of the known path, of no path, or neither. Bodies change from one request to the next
// and repeat the path that was asked. So answers are compared at the finest level at which the known path agrees with
// itself. An answer that cannot be told apart counts as reached: a probe that guessed "not found" would name a profile
// that lets it through.
import type { ProbeResponse } from './ask.ts';

export type Sample = { readonly target: string; readonly answer: ProbeResponse };

/** Reaction of an upstream to a spelling. `reached` and `unclear` both count as the known path. */
export type Deed =
  | { readonly kind: 'reached' }
  | { readonly kind: 'unclear'; readonly why: string }
  | { readonly kind: 'redirected'; readonly location: string }
  | { readonly kind: 'not_found'; readonly status: number }
  | { readonly kind: 'refused'; readonly status: number };

type Level = 'exact' | 'shape' | 'kind';
const LEVELS: readonly Level[] = ['exact', 'shape', 'kind'];

type Likeness = { readonly level: Level; readonly print: string };

type Baseline = {
  readonly status: number;
  readonly known: readonly Likeness[];
  readonly unknown: readonly Likeness[];
  /** Whether the last segment is a parameter: the upstream also answers any other last segment. */
  readonly parameter: boolean;
};

/** Reasons why a path's answers tell nothing. */
export type Doubt = 'silent' | 'redirects' | 'failing' | 'unsteady' | 'absent' | 'catch_all';
type BaselineResult =
  | { readonly ok: true; readonly baseline: Baseline }
  | { readonly ok: false; readonly doubt: Doubt };

/**
 * Reads the baseline of a path. `known` has several answers to the same request; `beside` and `far` have several each
 * to paths that cannot exist.
 */
export function readBaseline(
  known: readonly Sample[],
  beside: readonly Sample[],
  far: readonly Sample[],
): BaselineResult {
  const [first] = known;
  if (first?.answer.kind !== 'answer' || [...known, ...beside, ...far].some(({ answer }) => answer.kind === 'none'))
    return { ok: false, doubt: 'silent' };
  const { status } = first.answer;
  const likeness = likenessOf(known);
  if (likeness === undefined) return { ok: false, doubt: 'unsteady' };
  if (status >= 300 && status < 400) return { ok: false, doubt: 'redirects' };
  if (status >= 500 || status === 429) return { ok: false, doubt: 'failing' };
  if (resembles(first, likeness, far))
    return { ok: false, doubt: status === 404 || status === 410 ? 'absent' : 'catch_all' };
  // A handler that takes any name there gives each its own body; that nothing else gets this status gives it away.
  const handled =
    beside.some(({ answer }) => statusOf(answer) === status) && far.every(({ answer }) => statusOf(answer) !== status);
  const parameter = handled || resembles(first, likeness, beside);
  const siblings = likenessOf(beside) ?? [];
  const unknown = [likenessOf(far) ?? [], parameter ? [] : siblings].flat();
  return { ok: true, baseline: { status, known: [likeness, parameter ? siblings : []].flat(), unknown, parameter } };
}

/** Excludes from `baseline` what answers like all of `samples`: it is something else, the list above a parameter. */
export function excluding(baseline: Baseline, samples: readonly Sample[]): Baseline {
  const likeness = likenessOf(samples);
  if (likeness === undefined || samples.some((sample) => baseline.known.some((known) => isLike(sample, known))))
    return baseline;
  return { ...baseline, unknown: [...baseline.unknown, likeness] };
}

export function judge(sample: Sample, { status, known, unknown }: Baseline): Deed {
  const { answer } = sample;
  if (answer.kind === 'none') return { kind: 'unclear', why: answer.detail };
  const { location } = answer.headers;
  if (answer.status >= 300 && answer.status < 400 && location !== undefined) return { kind: 'redirected', location };
  if (known.some((likeness) => isLike(sample, likeness))) return { kind: 'reached' };
  // A successful status alone does not tell two pages apart if no two bodies agree.
  const tells = ({ level }: Likeness): boolean => level !== 'kind' || isRefusal(answer.status);
  if (unknown.some((likeness) => tells(likeness) && isLike(sample, likeness)))
    return { kind: 'not_found', status: answer.status };
  if (answer.status !== status && isRefusal(answer.status)) return { kind: 'refused', status: answer.status };
  return { kind: 'unclear', why: `${answer.status}, like neither` };
}

export function counts(deed: Deed): boolean {
  return deed.kind === 'reached' || deed.kind === 'unclear';
}

function statusOf(answer: ProbeResponse): number | undefined {
  return answer.kind === 'answer' ? answer.status : undefined;
}

/** Statuses that say by themselves that no handler did the work. 408 and 429 say it of the moment only. */
function isRefusal(status: number): boolean {
  return (status >= 400 && status < 500 && status !== 408 && status !== 429) || status === 501 || status === 505;
}

/** The finest level at which all of `samples` agree; undefined if not even their status does. */
function likenessOf(samples: readonly Sample[]): Likeness | undefined {
  for (const level of LEVELS) {
    const [print, ...others] = new Set(samples.map((sample) => fingerprint(sample, level)));
    if (print !== undefined && others.length === 0) return { level, print };
  }
  return undefined;
}

function isLike(sample: Sample, { level, print }: Likeness): boolean {
  return fingerprint(sample, level) === print;
}

/** Whether `sample`, which agrees with itself at `likeness.level`, could be one of `others`, which may be less steady. */
function resembles(sample: Sample, likeness: Likeness, others: readonly Sample[]): boolean {
  const level =
    LEVELS[Math.max(LEVELS.indexOf(likeness.level), LEVELS.indexOf(likenessOf(others)?.level ?? 'kind'))] ?? 'kind';
  const print = fingerprint(sample, level);
  return others.some((other) => fingerprint(other, level) === print);
}

function fingerprint({ target, answer }: Sample, level: Level): string {
  if (answer.kind === 'none') return 'none';
  const kind = `${answer.status} ${(answer.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''}`;
  if (level === 'kind') return kind;
  const body = withoutEcho(answer.body, target);
  return `${kind}\n${level === 'exact' ? body : shapeOf(body)}`;
}

/** The body with every repetition of what was asked taken out, however it was written there. */
function withoutEcho(body: string, target: string): string {
  const path = target.split(/[?#]/)[0] ?? '';
  const last = path.slice(path.lastIndexOf('/') + 1);
  let text = body;
  for (const asked of [target, path, ...(last.length > 2 ? [last] : [])]) {
    const decoded = decode(asked);
    for (const written of [
      asked,
      decoded,
      escapeMarkup(asked),
      escapeMarkup(decoded),
      JSON.stringify(decoded).slice(1, -1),
    ])
      if (written.length > 1) text = text.replaceAll(written, '<asked>');
  }
  return text;
}

/** Decodes percent-encoding as bytes, like the body; leaves what cannot be decoded. */
function decode(text: string): string {
  return text.replace(/%[0-9A-Fa-f]{2}/g, (found) => String.fromCharCode(Number.parseInt(found.slice(1), 16)));
}

function escapeMarkup(text: string): string {
  return text.replace(/[&<>"']/g, (character) => MARKUP.get(character) ?? character);
}
const MARKUP = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
]);

/**
 * The part of a body that stays when values change: the keys of JSON, or the words of a text without those that look
 * random or counted.
 */
function shapeOf(body: string): string {
  try {
    return JSON.stringify(shapeOfJson(JSON.parse(body)));
  } catch {
    return body
      .replace(/[A-Za-z0-9+/_=-]*\d[A-Za-z0-9+/_=-]*/g, '#')
      .replace(/\s+/g, ' ')
      .trim();
  }
}

function shapeOfJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? [] : [shapeOfJson(value[0])];
  if (typeof value !== 'object' || value === null) return typeof value;
  return Object.entries(value).map(([key, member]) => [key, shapeOfJson(member)]);
}
