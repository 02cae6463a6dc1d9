// The target of a call: a path with its parameters filled in, and a query. A value fills one segment and cannot lead to another
// path.

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Throws a TypeError if a parameter is missing or would change the path. */
export function writeTarget(path: string, params: Readonly<Record<string, string>> = {}, query: Query = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = Object.hasOwn(params, name) ? String(params[name]) : '';
    // A URL takes `.` and `..` for steps, however they are written.
    if (value === '' || value === '.' || value === '..')
      throw new TypeError(`${path} needs ${name}: ${value === '' ? 'it is missing' : `${value} is no id`}`);
    return encodeURIComponent(value);
  });
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.append(name, String(value));
  const text = search.toString();
  return text === '' ? filled : `${filled}?${text}`;
}
