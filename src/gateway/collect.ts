// Performs a verdict: the only one who talks to rails and ledger, and the only one who mints Permits. What it returns is
// either the way upstream, with the proof that the way is open, or an answer of ours. Answers of ours carry CORS headers
// for the configured origins, so that a browser's payer can read a 402.
import type { Verdict } from '../domain/decide.ts';
import type { Offer } from '../domain/offer.ts';
import type { PaymentRequired, Demand } from '../domain/payment-required.ts';
import { PROBLEMS, problem, problemBody, type Problem } from '../domain/problem.ts';
import type { Quotes } from '../domain/quote.ts';
import type { Answer } from '../host/respond.ts';
import { mintPermit, type Permit } from './permit.ts';
import type { RequestOutcome } from './telemetry.ts';

export type Outcome = { readonly kind: 'forward'; readonly permit: Permit } | AnswerOutcome;

export type AnswerOutcome = {
  readonly kind: 'answer';
  readonly answer: Answer;
  readonly outcome: RequestOutcome;
  /** The problem's code, or why a 402 was answered. */
  readonly reason: string | undefined;
  readonly chargeId: string | undefined;
  readonly routeId: string | undefined;
};

/** What a verdict needs to know of the request. */
export type Asked = {
  readonly method: string;
  /** The canonical path. */
  readonly path: string;
  /** Scheme and authority that clients use. */
  readonly publicOrigin: () => string;
  /** The Origin header. */
  readonly origin: string | undefined;
  readonly nowMs: number;
};

export type Collector = {
  readonly perform: (verdict: Verdict, asked: Asked) => Outcome;
  readonly refuse: (problem: Problem, origin: string | undefined, routeId?: string) => AnswerOutcome;
  /** `OPTIONS *`: about the server, not about a path; never forwarded. */
  readonly serverOptions: () => AnswerOutcome;
};

export type CollectorDeps = {
  readonly quotes: Quotes;
  readonly paymentRequired: (demand: Demand) => PaymentRequired;
  readonly corsOrigins: readonly string[];
  readonly methods: ReadonlySet<string>;
};

const EXPOSED = 'PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Retry-After, Tollgate-Reason';
const ALLOWED =
  'PAYMENT-SIGNATURE, X-PAYMENT, X-Customer-Id, Authorization, Content-Type, Access-Control-Expose-Headers';
const PREFLIGHT_SECONDS = '600';
/** When to come back after a passing fault on our side, in seconds. */
const RETRY_SECONDS = '5';

export function createCollector({ quotes, paymentRequired, corsOrigins, methods }: CollectorDeps): Collector {
  const cors = (origin: string | undefined): string[] => {
    if (origin === undefined || corsOrigins.length === 0) return [];
    const any = corsOrigins.includes('*');
    if (!any && !corsOrigins.includes(origin)) return ['Vary', 'Origin'];
    const allowed = ['Access-Control-Allow-Origin', any ? '*' : origin, 'Access-Control-Expose-Headers', EXPOSED];
    return any ? allowed : [...allowed, 'Vary', 'Origin'];
  };

  const demand = (offer: Offer, reason: string, asked: Asked): AnswerOutcome => {
    const chargeId = quotes.issue(offer, asked.method, asked.nowMs);
    const { body, header } = paymentRequired({
      offer,
      chargeId,
      origin: asked.publicOrigin(),
      path: asked.path,
      reason,
    });
    const headers = [
      ...['Content-Type', 'application/json', 'Cache-Control', 'no-store'],
      ...['PAYMENT-REQUIRED', header, 'Tollgate-Reason', reason],
      ...cors(asked.origin),
    ];
    const answer = { status: 402, headers, body };
    return { kind: 'answer', answer, outcome: 'payment_required', reason, chargeId, routeId: offer.route.id };
  };

  const refuse: Collector['refuse'] = (refusal, origin, routeId) => ({
    kind: 'answer',
    answer: problemAnswer(refusal, cors(origin)),
    outcome: PROBLEMS[refusal.code].fault === 'client' ? 'refused' : 'error',
    reason: refusal.code,
    chargeId: undefined,
    routeId,
  });

  const preflight = (origin: string | undefined): AnswerOutcome => {
    const allow = [...methods].join(', ');
    const granted = cors(origin);
    const headers = granted.includes('Access-Control-Allow-Origin')
      ? [
          ...granted,
          ...['Access-Control-Allow-Methods', allow, 'Access-Control-Allow-Headers', ALLOWED],
          ...['Access-Control-Max-Age', PREFLIGHT_SECONDS],
        ]
      : ['Allow', allow, ...granted];
    const answer = { status: 204, headers, body: '' };
    return { kind: 'answer', answer, outcome: 'free', reason: 'preflight', chargeId: undefined, routeId: undefined };
  };

  return {
    refuse,
    serverOptions: () => preflight(undefined),
    perform: (verdict, asked) => {
      switch (verdict.kind) {
        case 'pass':
          return { kind: 'forward', permit: mintPermit(verdict.because, verdict.route) };
        case 'answer_preflight':
          return preflight(asked.origin);
        case 'demand':
          return demand(verdict.offer, verdict.because, asked);
        case 'verify':
          return refuse(
            problem('rail_unavailable', 'Payments cannot be taken right now; nothing was charged. Try again later.', {
              headers: { 'Retry-After': RETRY_SECONDS },
            }),
            asked.origin,
            verdict.offer.route.id,
          );
        case 'refuse':
          return refuse(verdict.problem, asked.origin);
        default:
          return verdict satisfies never;
      }
    },
  };
}

/** A Problem as an answer; never cached, because what was wrong may be right a moment later. */
export function problemAnswer(refusal: Problem, headers: readonly string[] = []): Answer {
  const own = Object.entries(refusal.headers ?? {}).flat();
  return {
    status: PROBLEMS[refusal.code].status,
    headers: ['Content-Type', 'application/problem+json', 'Cache-Control', 'no-store', ...own, ...headers],
    body: problemBody(refusal),
  };
}
