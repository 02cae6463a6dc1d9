// The filter of the routes as people type it: words with a colon are members of the query, the rest is looked for in pattern and
// name. `status:paused method:GET source:sdk reports`.

export type RouteFilter = {
  readonly status: string | null;
  readonly method: string | null;
  readonly source: string | null;
  readonly q: string | null;
};

const MEMBERS = ['status', 'method', 'source'] as const;

export function readRouteFilter(text: string): RouteFilter {
  const filter: { -readonly [K in keyof RouteFilter]: RouteFilter[K] } = {
    status: null,
    method: null,
    source: null,
    q: null,
  };
  const rest: string[] = [];
  for (const word of text.split(/\s+/).filter((each) => each !== '')) {
    const colon = word.indexOf(':');
    const member = MEMBERS.find((each) => each === word.slice(0, colon).toLowerCase());
    const value = word.slice(colon + 1);
    // `/:id` is a pattern, and `status:` is not written to its end.
    if (member === undefined) rest.push(word);
    else if (value !== '') filter[member] = valueOf(member, value);
  }
  filter.q = rest.length === 0 ? null : rest.join(' ');
  return filter;
}

function valueOf(member: (typeof MEMBERS)[number], value: string): string {
  if (member === 'status') return value.toLowerCase();
  return member === 'method' ? value.toUpperCase() : value;
}
