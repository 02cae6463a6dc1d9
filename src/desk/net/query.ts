// Paths with a query. Values that are null, undefined or empty are left out, so that an address names only what was chosen.

export type QueryValues = Readonly<Record<string, string | number | null | undefined>>;

export function withQuery(path: string, values: QueryValues): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (value !== null && value !== undefined && value !== '') query.set(name, String(value));
  const text = query.toString();
  return text === '' ? path : `${path}?${text}`;
}
