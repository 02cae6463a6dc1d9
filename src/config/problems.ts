// The problems of a configuration, each with its place. Every message is a sentence of ours: it never repeats a value,
// because a value may be a secret and the position says which one is meant.

export type Path = readonly (string | number)[];

/**
 * Something wrong with the value at `path`; `at: 'key'`: with the key itself. `covers`: problems at or below this path
 * need not be told as well.
 */
export type Issue = { readonly path: Path; readonly message: string; readonly at?: 'key'; readonly covers?: Path };

export type ConfigProblem = {
  /** Name of the file on the command line; undefined if the problem is in a flag, and then `path` is the flag. */
  readonly file: string | undefined;
  readonly line: number;
  readonly column: number;
  /** Path such as `registry.api_keys[0].key`, or `(file)` for the whole. */
  readonly path: string;
  readonly message: string;
};

/** Writes `file:line:column path: what is wrong, what would be right`, one line. */
export function formatProblem({ file, line, column, path, message }: ConfigProblem): string {
  return file === undefined ? `${path}: ${message}` : `${file}:${line}:${column} ${path}: ${message}`;
}

export function formatPath(path: Path): string {
  const text = path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${showKey(step)}`))
    .join('');
  return text === '' ? '(file)' : text;
}

// A key that does not look like a word may be a value that slipped into its place.
function showKey(key: string): string {
  return /^[A-Za-z_][A-Za-z0-9_-]{0,39}$/.test(key) ? key : '(key)';
}

/** Whether `path` is `base` or lies below it. */
export function isWithin(path: Path, base: Path): boolean {
  return base.length <= path.length && base.every((step, index) => step === path[index]);
}

/** The value at `path` of plain data, or undefined. */
export function valueAt(data: unknown, path: Path): unknown {
  let value = data;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = Reflect.get(value, step);
  }
  return value;
}

export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
