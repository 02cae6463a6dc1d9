// Judges configuration data, of a file or of flags. It fills in secret files, asks the schema and the rules about
// combinations, and reports everything wrong at once, each with its place.
import type { z } from 'zod';
import { combinationIssues } from './combinations.ts';
import { completeDecision, expandDecision } from './front.ts';
import { knownKeys, unknownKey } from './unknown-keys.ts';
import type { LoadedConfig } from './config.ts';
import type { Env } from './environment.ts';
import { expandShortForms } from './facilitator-keys.ts';
import { whatStands } from './fields.ts';
import { isMap, isWithin, valueAt, type Issue, type Path } from './problems.ts';
import { keysOf } from './keys.ts';
import { toReceiver } from './receivers.ts';
import { toSelling } from './selling.ts';
import { expandStores } from './store.ts';
import { createConfigSchema, type ConfigSections } from './schema.ts';
import { readSecretFiles } from './secret-files.ts';
import type { Networks } from '../domain/payment/network.ts';

type Origin = Pick<LoadedConfig, 'file' | 'folder'>;
type ConfigSchema = ReturnType<typeof createConfigSchema>;

export type Source = Origin & {
  /** Plain data; it is changed while it is judged. */
  readonly data: unknown;
  /** Problems that were found before. */
  readonly issues: readonly Issue[];
  /** Whether the scalar there came from an environment variable, which can only hold text. */
  readonly fromEnvironment: (path: Path) => boolean;
  /** Networks that receivers may name. */
  readonly networks: Networks;
  /** Variables in which short forms find their keys. */
  readonly env: Env;
  /** Time in milliseconds since the epoch; left out: that of the system. */
  readonly now?: number | undefined;
};

export type Validation =
  | { readonly ok: true; readonly config: LoadedConfig; readonly filesBeside: readonly string[] }
  | { readonly ok: false; readonly issues: readonly Issue[] };

export function validate({
  data,
  issues: known,
  fromEnvironment,
  file,
  folder,
  networks,
  env,
  now = Date.now(),
}: Source): Validation {
  const raw = data ?? {};
  if (!isMap(raw)) {
    const message = `${whatStands(raw)}; write sections such as \`proxy:\` and \`registry:\``;
    return { ok: false, issues: [{ path: [], message }] };
  }
  const schema = createConfigSchema(folder);
  const decisions = expandDecision(raw);
  fillEmptySections(raw, schema);
  const files = readSecretFiles(raw, folder);
  const short = expandShortForms(raw, env);
  const stores = expandStores(raw);
  const early = [...known, ...files.issues, ...short.issues];
  const parsed = parse(schema, raw, (path) => fromEnvironment(decisions.written({ path, message: '' }).path));
  const found = [...early, ...combinationIssues(raw, networks, now).map(relocate)];
  function relocate(issue: Issue): Issue {
    return decisions.written(stores.written(short.written({ ...issue, path: files.written(issue.path) })));
  }
  if (!parsed.success) {
    // If something is already said about a place, the schema has nothing to add about it or what lies below.
    const said = found.flatMap(({ at, path }) => (at === undefined && path.length > 0 ? [path] : []));
    const more = parsed.error.issues.flatMap((issue) => toIssues(issue, raw, schema)).map(relocate);
    found.push(...more.filter(({ path }) => !said.some((base) => isWithin(path, base))));
  }
  const covered = found.flatMap(({ covers }) => (covers ? [covers] : []));
  const issues = withoutRepetition(
    found.filter(({ path, covers }) => covers !== undefined || !covered.some((base) => isWithin(path, base))),
  );
  if (issues.length > 0 || !parsed.success) return { ok: false, issues };
  const { openapi, llms } = parsed.data.discovery ?? {};
  const filesBeside = [...files.files, ...[openapi, llms].flatMap((each) => each?.file ?? [])];
  return { ok: true, config: toConfig(parsed.data, { file, folder }, networks), filesBeside };
}

function toConfig(sections: ConfigSections, origin: Origin, networks: Networks): LoadedConfig {
  const decision = sections.decision?.map((section) => completeDecision(section, sections.proxy));
  const front = sections.proxy ?? decision?.[0]?.front;
  return {
    ...sections,
    ...origin,
    ...{ decision, front },
    shape: front === undefined ? 'registry' : sections.registry === undefined ? 'sidecar' : 'all-in-one',
    receivers: sections.receivers.map((receiver) => toReceiver(receiver, networks)),
    selling: toSelling(sections.selling),
  };
}

/** Fills sections such as `proxy:` with nothing behind it: it is empty, not missing. */
function fillEmptySections(raw: Record<string, unknown>, schema: ConfigSchema): void {
  for (const key of Object.keys(raw)) {
    if (raw[key] !== null || !Object.hasOwn(keysOf(schema) ?? {}, key)) continue;
    if (key === 'receivers' || key === 'routes') raw[key] = [];
    else if (key !== 'workers') raw[key] = {};
  }
}

/** Parses; text from the environment that stands where a number or a truth value is wanted is read as that first. */
function parse(
  schema: ConfigSchema,
  raw: Record<string, unknown>,
  fromEnvironment: (path: Path) => boolean,
): z.ZodSafeParseResult<ConfigSections> {
  const first = schema.safeParse(raw, { error: sentence });
  if (first.success) return first;
  let changed = false;
  for (const issue of first.error.issues) {
    const path = toPath(issue.path);
    const value = valueAt(raw, path);
    if (issue.code !== 'invalid_type' || typeof value !== 'string' || !fromEnvironment(path)) continue;
    const read =
      issue.expected === 'number' ? readNumber(value) : issue.expected === 'boolean' ? readFlag(value) : undefined;
    const holder = valueAt(raw, path.slice(0, -1));
    const key = path.at(-1);
    if (read === undefined || key === undefined || typeof holder !== 'object' || holder === null) continue;
    Reflect.set(holder, key, read);
    changed = true;
  }
  return changed ? schema.safeParse(raw, { error: sentence }) : first;
}

function readNumber(text: string): number | undefined {
  return /^(0|[1-9]\d{0,14})$/.test(text) ? Number(text) : undefined;
}

function readFlag(text: string): boolean | undefined {
  return text === 'true' ? true : text === 'false' ? false : undefined;
}

/** What a field without words of its own says. Never the input itself. */
function sentence(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'invalid_type') return undefined;
  const wanted: Record<string, string> = {
    string: 'text',
    object: 'a section',
    record: 'a section',
    array: 'a list',
    boolean: 'true or false',
  };
  const quote = issue.expected === 'string' && (typeof issue.input === 'number' || typeof issue.input === 'boolean');
  return `${whatStands(issue.input)}${quote ? ': quote it' : ''}; write ${wanted[issue.expected] ?? `a ${issue.expected}`}`;
}

function toIssues(issue: z.core.$ZodIssue, raw: unknown, schema: ConfigSchema): Issue[] {
  const path = toPath(issue.path);
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeys(schema, path);
    return issue.keys.map((key) => unknownKey(key, path, known));
  }
  if (issue.code === 'invalid_key') return [{ path, at: 'key', message: issue.issues[0]?.message ?? 'is not a name' }];
  return [{ path, message: complete(issue.message, valueAt(raw, path) === undefined) }];
}

/** The fields of a route say only what would be right, because an API's answers already say the rest. */
function complete(message: string, missing: boolean): string {
  if (message.startsWith('is ')) return message;
  if (missing) return `is missing; ${message}`;
  return /^(an?|at most|up to) /.test(message) ? `is not usable; write ${message}` : message;
}

function toPath(path: readonly PropertyKey[]): Path {
  return path.map((step) => (typeof step === 'symbol' ? String(step) : step));
}

function withoutRepetition(issues: readonly Issue[]): Issue[] {
  const seen = new Set<string>();
  return issues.filter(({ path, message }) => {
    const name = JSON.stringify([path, message]);
    return !seen.has(name) && seen.add(name);
  });
}
