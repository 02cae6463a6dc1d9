// The dialects: where each proxy says what it was asked for, and in which form it can hand an answer on. Measured facts about the
// proxies stand in the tests and in config/proxies.
import type { Dialect } from '../../domain/dialect.ts';

export type DialectRules = {
  readonly dialect: Dialect;
  /** Lower-cased names of the headers that carry the question; undefined: it is the request line. */
  readonly question: QuestionHeaders | undefined;
  /** Prefix of rewriting headers that the proxy writes itself, and a client cannot; undefined: it writes none. */
  readonly ownPrefix: string | undefined;
  /** Lower-cased name of the header with the id that the proxy made for its client's request. */
  readonly requestId: string;
  /** Whether the proxy can only hand on what stands in headers of a 403. */
  readonly answersInHeaders: boolean;
  /** Whether a CORS preflight can be answered: a 204 is an allow to some. */
  readonly answersPreflight: boolean;
  /** Whether the proxy can say later that its upstream failed. */
  readonly reports: boolean;
};

export type QuestionHeaders = {
  readonly method: string;
  readonly target: string;
  /** Header with the whole URL, for a proxy that cannot write the target alone. */
  readonly url: string | undefined;
};

const ORIGINAL: QuestionHeaders = { method: 'x-original-method', target: 'x-original-uri', url: 'x-original-url' };
const FORWARDED: QuestionHeaders = { method: 'x-forwarded-method', target: 'x-forwarded-uri', url: undefined };
const REQUEST_ID = 'tollgate-request-id';
const USUAL = { requestId: REQUEST_ID, answersInHeaders: false, answersPreflight: true, reports: true };
const BY_ORIGINAL = { ...USUAL, question: ORIGINAL, ownPrefix: 'x-original-' };
const BY_FORWARDED = { ...USUAL, question: FORWARDED, ownPrefix: 'x-forwarded-' };

const RULES: Readonly<Record<Dialect, DialectRules>> = {
  nginx: { ...BY_ORIGINAL, dialect: 'nginx', answersInHeaders: true },
  nginx_accel: { ...BY_ORIGINAL, dialect: 'nginx_accel' },
  caddy: { ...BY_FORWARDED, dialect: 'caddy' },
  traefik: { ...BY_FORWARDED, dialect: 'traefik', answersPreflight: false },
  envoy: {
    ...USUAL,
    ...{ dialect: 'envoy', question: undefined, ownPrefix: undefined },
    ...{ requestId: 'x-request-id', reports: false },
  },
  haproxy: { ...BY_FORWARDED, dialect: 'haproxy' },
};

export function rulesOf(dialect: Dialect): DialectRules {
  return RULES[dialect];
}
