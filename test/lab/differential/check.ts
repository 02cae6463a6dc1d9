// Holds what the upstream received and what the client got against what was sent.
import { isDeepStrictEqual } from 'node:util';
import type { StrictRequest } from '../../support/strict-upstream.ts';
import type { RawAnswer } from '../../support/raw-client.ts';
import type { Got } from './client.ts';
import type { Verdict } from './oracle.ts';
import type { Exchange } from './plan.ts';

export type Expectations = {
  /** What the upstream is asked for. */
  readonly target: string;
  /** The front's own answer where the upstream gave none. */
  readonly failureStatus: number;
  /** Interim answers that the front passes on. */
  readonly passes: readonly number[];
};

/** What is wrong, in words. */
export function check(
  exchange: Exchange,
  verdict: Verdict,
  got: Got,
  seen: readonly StrictRequest[],
  expected: Expectations,
): string[] {
  return [...checkUpstream(exchange, got, seen, expected), ...checkClient(exchange, verdict, got, expected)].map(
    (fault) => `${describe(exchange)}: ${fault}`,
  );
}

function describe({ token, method, version, framing, body, answer }: Exchange): string {
  return `${token} ${method} HTTP/${version}, ${framing} of ${body.length}, answer of ${answer.bytes.length} (${answer.when}, ${answer.afterwards})`;
}

function checkUpstream(
  exchange: Exchange,
  got: Got,
  seen: readonly StrictRequest[],
  { target }: Expectations,
): string[] {
  const { method, body, token } = exchange;
  const faults: string[] = [];
  // Once more only what may be repeated, and that answers nothing: it is sent again on a connection that was used before.
  if (seen.length > 2 || (seen.length === 2 && (body.length > 0 || method === 'POST' || method === 'PATCH')))
    faults.push(`the upstream saw it ${seen.length} times`);
  if (seen.length === 0 && got.kind === 'answer') faults.push('answered, and the upstream never saw it');
  for (const request of seen) {
    if (request.method !== method || request.target !== target)
      faults.push(`the upstream saw ${request.method} ${request.target}`);
    if (!request.headers.some(([name, value]) => name === 'X-Probe' && value === token))
      faults.push('the upstream saw another X-Probe');
    if (request.whole ? !request.body.equals(body) : !request.body.equals(body.subarray(0, request.body.length)))
      faults.push(`the upstream saw another body: ${differenceOf(body, request.body)}`);
    // An upstream that answers early does not wait for the rest.
    if (!request.whole && got.kind === 'answer' && exchange.answer.when === 'whole' && exchange.answer.bytes.length > 0)
      faults.push('answered, and the upstream never saw all of it');
  }
  return faults;
}

function checkClient(exchange: Exchange, verdict: Verdict, got: Got, expected: Expectations): string[] {
  const { expects, version } = exchange;
  switch (got.kind) {
    case 'left':
      return [];
    case 'cut': {
      if (verdict.kind === 'whole') return ['the answer was cut off'];
      if (!verdict.head && exchange.answer.afterwards === 'fin') return ['cut off instead of an answer that says so'];
      return checkBeginning(exchange, got.rest);
    }
    case 'answer': {
      const { answer, informational } = got;
      const allowed = new Set([...(expects ? [100] : []), ...(version === '1.1' ? expected.passes : [])]);
      const faults = informational
        .filter((status) => !allowed.has(status))
        .map((status) => `an interim answer ${status} that nobody asked for`);
      if (expects && informational.filter((status) => status === 100).length !== 1) faults.push('not one 100');
      if (verdict.kind === 'broken') {
        if (answer.status !== expected.failureStatus) faults.push(`${answer.status} for an answer that broke off`);
        return faults;
      }
      return [...faults, ...checkAnswer(exchange, verdict, answer)];
    }
    default:
      return got satisfies never;
  }
}

function checkAnswer(exchange: Exchange, verdict: Extract<Verdict, { kind: 'whole' }>, answer: RawAnswer): string[] {
  const faults: string[] = [];
  if (answer.status !== verdict.status)
    return [`${answer.status} instead of ${verdict.status}: ${answer.body.toString('latin1', 0, 300)}`];
  const own = (pairs: readonly (readonly [string, string])[]): readonly (readonly [string, string])[] =>
    pairs.filter(([name]) => /^x-(?:answer|h\d)$/i.test(name));
  const sent = verdict.headers.flatMap((name, i): [string, string][] =>
    i % 2 === 0 ? [[name, verdict.headers[i + 1] ?? '']] : [],
  );
  if (!isDeepStrictEqual(own(answer.headers), own(sent)))
    faults.push(`other headers: ${JSON.stringify(answer.headers)}`);
  const body = exchange.method === 'HEAD' ? Buffer.alloc(0) : verdict.body;
  if (!answer.body.equals(body)) faults.push(`another body: ${differenceOf(body, answer.body)}`);
  return faults;
}

/** The beginning of an answer that broke off: nobody's but this one's. */
function checkBeginning({ token }: Exchange, rest: Buffer): string[] {
  const end = rest.indexOf('\r\n\r\n');
  if (end < 0) return [];
  const head = rest.toString('latin1', 0, end);
  return head.includes(`X-Answer: ${token}`) ? [] : [`the beginning of another answer: ${head.slice(0, 300)}`];
}

function differenceOf(wanted: Buffer, got: Buffer): string {
  let at = 0;
  while (at < wanted.length && wanted[at] === got[at]) at++;
  const near = JSON.stringify(got.toString('latin1', Math.max(0, at - 20), at + 60));
  return `${got.length} bytes for ${wanted.length}, different from byte ${at}: ${near}`;
}
