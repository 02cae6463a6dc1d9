// The routes of the suite: what costs something and what does not. Every upstream implements these shapes in its own
// router, the proxy is told the same list, and the mutators start from their targets. The two paused routes stand among
// priced ones on purpose: a spelling that the proxy takes for the paused one and the upstream for its neighbour is a way in.

export type SuiteRoute = {
  readonly id: string;
  readonly method: string;
  /** In the proxy's syntax. */
  readonly pattern: string;
  readonly paused?: true;
  /** 0.10 where left out. */
  readonly amount?: string;
};

export const ROUTES: readonly SuiteRoute[] = [
  { id: 'export', method: 'GET', pattern: '/v1/export' },
  { id: 'report', method: 'GET', pattern: '/v1/reports/:id' },
  { id: 'files', method: 'GET', pattern: '/v1/files/*' },
  { id: 'job', method: 'POST', pattern: '/v1/teams/:team/jobs/:job' },
  { id: 'kiss', method: 'GET', pattern: '/v1/Kiss/Data' },
  { id: 'spaced', method: 'GET', pattern: '/v1/my%20report' },
  // Of the models below alone: only where marks are one does it have another name.
  { id: 'daily', method: 'GET', pattern: '/v1/daily_report' },
  { id: 'file', method: 'GET', pattern: '/v1/data.json' },
  // Of the mutations alone: a dear one that has another name under a cheap one.
  { id: 'summary', method: 'GET', pattern: '/v1/summaries/:id' },
  { id: 'yearly', method: 'GET', pattern: '/v1/summaries/yearly', amount: '1.00' },
  { id: 'open', method: 'GET', pattern: '/v1/reports/open', paused: true },
  { id: 'public', method: 'GET', pattern: '/v1/files/public', paused: true },
];

export type Base = { readonly method: string; readonly path: string };

/** A request for every protected route, and for the paused ones that have a protected neighbour. */
export const BASES: readonly Base[] = [
  { method: 'GET', path: '/v1/export' },
  { method: 'GET', path: '/v1/reports/q3' },
  { method: 'GET', path: '/v1/files/a/b' },
  { method: 'POST', path: '/v1/teams/red/jobs/7' },
  { method: 'GET', path: '/v1/Kiss/Data' },
  { method: 'GET', path: '/v1/my%20report' },
  { method: 'GET', path: '/v1/reports/open' },
  { method: 'GET', path: '/v1/files/public' },
];

export const PRICED_IDS: readonly string[] = ROUTES.filter(({ paused }) => paused !== true).map(({ id }) => id);

/** The two routes of the upstream that are free though they match a priced pattern. */
export const FREE_PATHS: readonly string[] = ROUTES.filter(({ paused }) => paused === true).map(
  ({ pattern }) => pattern,
);
