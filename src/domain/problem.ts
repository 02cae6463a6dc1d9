// The one catalogue of everything that Tollgate refuses: code, status, title and whose fault it is. The gateway and the
// registry both answer from here, so that a client meets one error shape (RFC 9457) everywhere. The 402 is not a
// problem: its body is the source interface's section 7.1, see payment-required.

type Entry = { readonly status: number; readonly title: string; readonly fault: 'client' | 'tollgate' | 'upstream' };

export const PROBLEMS = {
  // The gateway: what a request on the proxy port can be told.
  target_ambiguous: { status: 400, title: 'Ambiguous request target', fault: 'client' },
  request_malformed: { status: 400, title: 'Malformed request', fault: 'client' },
  target_too_long: { status: 414, title: 'Request target too long', fault: 'client' },
  headers_too_large: { status: 431, title: 'Request header fields too large', fault: 'client' },
  request_timeout: { status: 408, title: 'Request took too long to arrive', fault: 'client' },
  expectation_failed: { status: 417, title: 'Expectation failed', fault: 'client' },
  method_unsupported: { status: 501, title: 'Method not supported', fault: 'client' },
  coding_unsupported: { status: 501, title: 'Transfer coding not supported', fault: 'client' },
  method_not_declared: { status: 405, title: 'Method not declared for this path', fault: 'client' },
  http_version_unsupported: { status: 505, title: 'HTTP version not supported', fault: 'client' },
  customer_required: { status: 400, title: 'Customer identification required', fault: 'client' },
  price_ambiguous: { status: 400, title: 'Ambiguous price', fault: 'client' },
  length_required: { status: 411, title: 'Length required', fault: 'client' },
  payment_malformed: { status: 400, title: 'Malformed payment', fault: 'client' },
  pass_malformed: { status: 400, title: 'Malformed pass', fault: 'client' },
  payment_in_use: { status: 409, title: 'Payment in use', fault: 'client' },
  already_paid: { status: 409, title: 'Already paid', fault: 'client' },
  too_many_challenges: { status: 429, title: 'Too many requests without a payment', fault: 'client' },
  too_many_payments: { status: 429, title: 'Too many payments at a time', fault: 'client' },
  too_many_unsettled: { status: 429, title: 'Too many unsettled payments', fault: 'client' },
  too_many_passes: { status: 429, title: 'Too many passes', fault: 'client' },
  pass_in_use: { status: 409, title: 'Pass in use', fault: 'client' },
  idempotency_conflict: { status: 409, title: 'Idempotency key used already', fault: 'client' },
  receiver_unknown: { status: 503, title: 'Receiver unknown', fault: 'tollgate' },
  price_unpayable: { status: 503, title: 'Price unpayable', fault: 'tollgate' },
  facilitator_unavailable: { status: 503, title: 'Facilitator unavailable', fault: 'tollgate' },
  settlement_unknown: { status: 503, title: 'Settlement outcome unknown', fault: 'tollgate' },
  ledger_unavailable: { status: 503, title: 'Ledger unavailable', fault: 'tollgate' },
  plan_unknown: { status: 503, title: 'Plan unknown', fault: 'tollgate' },
  plan_unanswerable: { status: 503, title: 'Plan unanswerable here', fault: 'tollgate' },
  price_unavailable: { status: 503, title: 'Price unavailable', fault: 'tollgate' },
  customers_unavailable: { status: 503, title: 'Customers cannot be told', fault: 'tollgate' },
  routes_absent: { status: 503, title: 'Routes not loaded yet', fault: 'tollgate' },
  too_many_requests_in_flight: { status: 503, title: 'Too many requests in flight', fault: 'tollgate' },
  upstream_unreachable: { status: 502, title: 'Upstream unreachable', fault: 'upstream' },
  upstream_timeout: { status: 504, title: 'Upstream took too long', fault: 'upstream' },
  // Decisions: what a proxy that asks can be told, beside the codes above.
  peer_untrusted: { status: 403, title: 'Peer not trusted', fault: 'client' },
  question_malformed: { status: 400, title: 'Malformed question', fault: 'client' },
  target_not_canonical: { status: 400, title: 'Request target not canonical', fault: 'client' },
  header_refused: { status: 400, title: 'Header refused', fault: 'client' },
  preflight_unanswerable: { status: 403, title: 'Preflight cannot be answered', fault: 'client' },
  upstream_failed: { status: 502, title: 'Upstream failed', fault: 'upstream' },
  // The registry: what a dashboard or an SDK can be told.
  malformed: { status: 400, title: 'Malformed request', fault: 'client' },
  credentials_missing: { status: 401, title: 'Credentials missing', fault: 'client' },
  credentials_invalid: { status: 401, title: 'Credentials invalid', fault: 'client' },
  host_refused: { status: 403, title: 'Host refused', fault: 'client' },
  origin_refused: { status: 403, title: 'Origin refused', fault: 'client' },
  scope_insufficient: { status: 403, title: 'Scope insufficient', fault: 'client' },
  not_found: { status: 404, title: 'Not found', fault: 'client' },
  webhook_unknown: { status: 404, title: 'Webhook unknown', fault: 'client' },
  method_not_allowed: { status: 405, title: 'Method not allowed', fault: 'client' },
  too_many_keys: { status: 409, title: 'Too many API keys', fault: 'client' },
  duplicate: { status: 409, title: 'Duplicate', fault: 'client' },
  refund_exceeds: { status: 409, title: 'Refund exceeds the charge', fault: 'client' },
  refund_unproven: { status: 422, title: 'Refund not proven', fault: 'client' },
  chain_unavailable: { status: 503, title: 'Chain cannot be read', fault: 'upstream' },
  price_lowered: { status: 409, title: 'Price lowered', fault: 'client' },
  precondition_failed: { status: 412, title: 'Precondition failed', fault: 'client' },
  body_too_large: { status: 413, title: 'Body too large', fault: 'client' },
  media_type_unsupported: { status: 415, title: 'Media type not supported', fault: 'client' },
  invalid: { status: 422, title: 'Invalid content', fault: 'client' },
  too_many_requests: { status: 429, title: 'Too many requests', fault: 'client' },
  registry_unavailable: { status: 503, title: 'Registry unavailable', fault: 'tollgate' },
  internal: { status: 500, title: 'Internal error', fault: 'tollgate' },
} as const satisfies Record<string, Entry>;

export type ProblemCode = keyof typeof PROBLEMS;

/** Wrong place in a JSON body: `pointer` is an RFC 6901 JSON pointer (`/amount`), `detail` a sentence. */
export type FieldError = { readonly pointer: string; readonly detail: string };

export type Problem = {
  readonly code: ProblemCode;
  /** A public sentence: what is wrong and what to do. Never a stack, a path of this machine or a secret. */
  readonly detail: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Seconds until it is worth asking again. */
  readonly retryAfter?: number | undefined;
  readonly errors?: readonly FieldError[];
  /** Status that replaces the one of its code: an answer that was given before is given again. */
  readonly status?: number | undefined;
  /** Further public members of the body, such as `charge_id` or `existing_id`. */
  readonly members?: Readonly<Record<string, string | number | boolean | readonly string[]>>;
};

export function problem(code: ProblemCode, detail: string, rest: Omit<Problem, 'code' | 'detail'> = {}): Problem {
  return { code, detail, ...rest };
}

/** Whole seconds, at least one. */
export function secondsToWait(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

/** The response to a refusal, never cached, because what was wrong may be right a moment later. */
type RenderedProblem = {
  readonly status: number;
  /** Flat name, value pairs. */
  readonly headers: readonly string[];
  readonly body: string;
};

/** Renders a problem as a response. `headers` are further ones. */
export function renderProblem(p: Problem, headers: readonly string[] = []): RenderedProblem {
  const own = Object.entries(p.headers ?? {}).flat();
  if (p.retryAfter !== undefined) own.push('Retry-After', String(p.retryAfter));
  return {
    status: p.status ?? PROBLEMS[p.code].status,
    headers: ['Content-Type', 'application/problem+json', 'Cache-Control', 'no-store', ...own, ...headers],
    body: bodyOf(p),
  };
}

/** The body of `application/problem+json` (RFC 9457); `type` is a relative reference. */
function bodyOf(p: Problem): string {
  const { title, status } = PROBLEMS[p.code];
  return JSON.stringify({
    type: `/problems/${p.code}`,
    title,
    status: p.status ?? status,
    detail: p.detail,
    code: p.code,
    ...(p.errors ? { errors: p.errors } : {}),
    ...p.members,
  });
}

/** Said by the listener, and of a version that its parser lets through. */
export const HTTP_VERSION_UNSUPPORTED = problem(
  'http_version_unsupported',
  'This server speaks HTTP/1.1 and HTTP/1.0.',
);

/** Problems for which a listener refuses a request before any handler sees it. */
export const LISTENER_REFUSALS = {
  malformed: renderProblem(problem('request_malformed', 'The request is not well-formed HTTP/1.1.')),
  targetAmbiguous: renderProblem(
    problem(
      'target_ambiguous',
      'The request target is no path, or holds a control character, a space or a byte outside ASCII; percent-encode those.',
    ),
  ),
  hostMissing: renderProblem(problem('request_malformed', 'An HTTP/1.1 request needs a Host header.')),
  timeout: renderProblem(problem('request_timeout', 'The request headers did not arrive in time.')),
  targetTooLong: renderProblem(problem('target_too_long', 'The request target is longer than this server reads.')),
  expectationFailed: renderProblem(
    problem('expectation_failed', 'The only expectation this server knows is 100-continue.'),
  ),
  headersTooLarge: renderProblem(
    problem('headers_too_large', 'The request headers are larger than this server reads.'),
  ),
  internal: renderProblem(problem('internal', 'The request could not be handled; the log says why.')),
  methodUnsupported: renderProblem(problem('method_unsupported', 'This server does not support the request method.')),
  versionUnsupported: renderProblem(HTTP_VERSION_UNSUPPORTED),
} as const satisfies Record<string, RenderedProblem>;
