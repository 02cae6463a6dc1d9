// The question that a proxy asks: method and target of its client's request, as its dialect writes them. Each stands once, in
// one spelling, or there is no question: two readers of a doubled header take two different ones.
import type { IncomingMessage } from 'node:http';
import { problem, type Problem } from '../../domain/problem.ts';
import { DOUBLE, FORWARDED_HOST, type AskedValues } from './asked-headers.ts';
import type { DialectRules, QuestionHeaders } from './dialect-rules.ts';

export type Question = {
  readonly method: string;
  /** `/`-led, as the proxy got it. */
  readonly target: string;
  /** Authority that the client used, if the proxy says so. */
  readonly host: string | undefined;
  /** Id that the proxy made for its client's request. */
  readonly requestId: string | undefined;
};

const URL_FORM = /^https?:\/\/([A-Za-z0-9.:[\]-]+)(\/.*)$/i;
const NO_URL: readonly string[] = [];
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** Reads the question of `req`, whose headers have `values`. `pathPrefix` is what Envoy puts before each target. */
export function readQuestion(
  req: IncomingMessage,
  values: Readonly<AskedValues>,
  rules: DialectRules,
  pathPrefix: string,
): Question | Problem {
  const requestId = values.requestId;
  if (requestId === DOUBLE || (requestId !== undefined && !REQUEST_ID.test(requestId)))
    return malformed(`${rules.requestId} has to stand once, as 1 to 128 visible ASCII characters`);
  const asked = rules.question === undefined ? ownLine(req, pathPrefix) : headerLine(values, rules.question);
  if ('code' in asked) return asked;
  const { method, target, host } = asked;
  if (target.charCodeAt(0) !== 0x2f) return malformed('the target of the request does not begin with a slash');
  return { method, target, host, requestId };
}

type AskedLine = Omit<Question, 'requestId'>;

/** Envoy sends the request line of its client. */
function ownLine({ method = '', url = '', headers }: IncomingMessage, pathPrefix: string): AskedLine | Problem {
  if (!url.startsWith(pathPrefix)) return malformed('the target does not begin with path_prefix');
  return { method, target: url.slice(pathPrefix.length), host: headers.host };
}

function headerLine(values: Readonly<AskedValues>, names: QuestionHeaders): AskedLine | Problem {
  const { method, target: uri, url, host } = values;
  if (method === undefined || method === DOUBLE || method === '')
    return malformed(`${names.method} has to stand once, with the method of the request`);
  if (uri === DOUBLE || uri === '')
    return malformed(`${names.target} has to stand once, with the target of the request`);
  if (url === DOUBLE) return malformed(`${names.url} has to stand once`);
  const whole = url === undefined ? NO_URL : URL_FORM.exec(url);
  if (whole === null) return malformed(`${names.url} is not scheme, host and path`);
  const authority = whole[1];
  const rest = whole[2];
  if (uri !== undefined && rest !== undefined && rest !== uri)
    return malformed(`${names.target} and ${names.url} name two targets`);
  const target = uri ?? rest;
  if (target === undefined) return malformed(`${names.target} has to stand once, with the target of the request`);
  if (host === DOUBLE) return malformed(`${FORWARDED_HOST} has to stand once`);
  // A client of HTTP/1.0 may name none, and some proxies write that as nothing.
  return { method, target, host: host === undefined || host === '' ? authority : host };
}

function malformed(detail: string): Problem {
  return problem('question_malformed', `The proxy in front asks in a way that cannot be read: ${detail}.`);
}
