// A stream of raw questions to a decision listener of the dialect nginx: fragments of every dialect, doubled and folded headers,
// absolute targets, pseudo headers of HTTP/2, odd bytes. `/paid/*` has to cost something there, everything else is free. Each question
// goes over a connection of its own, and is judged by what came back alone.
import { connect } from 'node:net';
import { createRng, type Rng } from '../../support/random.ts';

export type QuestionRun = {
  readonly port: number;
  readonly secret: string;
  readonly seed: number;
  readonly questions: number;
};
export type QuestionReport = {
  readonly asked: number;
  readonly allowed: number;
  /** Questions with an answer that is wrong, and that answer's head. */
  readonly wrong: readonly string[];
};

const TARGETS = [
  ...[
    '/paid/x',
    '/free/a',
    '/paid',
    '/paid/',
    '//paid/x',
    '/free/../paid/x',
    '/%70aid/x',
    '/paid%2fx',
    '/free/%2e%2e/paid/x',
    '*',
    '',
  ],
  ...[
    'http://a/paid/x',
    'http://a?/paid/x',
    '/free?/paid/x',
    '/free#/paid/x',
    '/PAID/x',
    '/paid;a/x',
    '/free/..;/paid/x',
    '/paid\\x',
  ],
  ...[
    'https://a.example/paid/x',
    '/a b',
    '/\x01',
    '/\xe4',
    '/paid/x HTTP/1.1',
    '/{paid}',
    '/free/%00',
    '/free/a%3bb',
    '?paid',
  ],
];
const METHODS = ['GET', 'POST', 'HEAD', 'OPTIONS', 'PUT', 'get', 'FOO', 'TRACE', 'CONNECT', '', 'GET, POST', 'DELETE'];
const NAMES = [
  ...['x-original-uri', 'X-Original-URI', 'x_original_uri', 'X-Original-URL', 'x-original-method', 'X-Original-Method'],
  ...[
    'x-forwarded-uri',
    'X-Forwarded-Method',
    'x-forwarded-host',
    'x-forwarded-proto',
    'forwarded',
    'x-rewrite-url',
    'x-envoy-original-path',
  ],
  ...[
    'tollgate-payer',
    'Tollgate_Charge_Id',
    'tollgate.decision',
    'tollgate-request-id',
    'tollgate-charge-id',
    'x-http-method-override',
  ],
  ...[
    ':path',
    ':method',
    'connection',
    'expect',
    'upgrade',
    'transfer-encoding',
    'content-length',
    'payment-signature',
    'x-payment',
    'origin',
  ],
  ...['access-control-request-method', 'x-customer-id', 'cookie', 'host', 'x-accel-redirect', 'tollgate-target', 'te'],
];
const VALUES = [
  ...[
    'allow',
    'chunked',
    '0',
    '5',
    'upgrade',
    'websocket',
    '100-continue',
    'a, b',
    'https://app.example',
    'a'.repeat(300),
    'e30=',
    '',
  ],
  ...['x-original-uri', 'close', 'keep-alive, x-original-uri'],
];

export async function runQuestions({ port, secret, seed, questions }: QuestionRun): Promise<QuestionReport> {
  const wrong: string[] = [];
  let allowed = 0;
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < questions; index = next++) {
      const { bytes, free } = makeQuestion(createRng(seed, index), secret);
      const answer = await send(port, bytes);
      for (const head of answer.match(/HTTP\/1\.1 \d{3}[^]*?\r\n\r\n/g) ?? []) {
        const status = Number(head.slice(9, 12));
        const target = /^tollgate-target: (.*)\r$/im.exec(head)?.[1];
        const allows = status === 200 && /^tollgate-decision: allow\r$/im.test(head);
        if (allows) allowed++;
        if (status < 200 || (status < 400 && !allows) || (allows && (target === undefined || !free.has(target))))
          wrong.push(`${JSON.stringify(bytes)} -> ${JSON.stringify(head)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: 16 }, work));
  return { asked: questions, allowed, wrong };
}

/** A question, and the targets of it that may be allowed: those that stand in it, and cost nothing in any reading. */
function makeQuestion(rng: Rng, secret: string): { readonly bytes: string; readonly free: ReadonlySet<string> } {
  const { pick } = rng;
  const asked: string[] = [];
  const target = (): string => {
    const chosen = rng.int(8) === 0 ? pick(TARGETS) + pick(TARGETS) : pick(TARGETS);
    asked.push(chosen);
    return chosen;
  };
  const lines: string[] = [];
  if (rng.int(12) > 0) lines.push(`tollgate-secret: ${rng.int(20) === 0 ? 'wrong' : secret}`);
  if (rng.int(10) > 0) lines.push('host: tollgate');
  if (rng.int(8) > 0) lines.push(`x-original-method: ${rng.int(2) === 0 ? 'GET' : pick(METHODS)}`);
  if (rng.int(8) > 0) lines.push(`x-original-uri: ${target()}`);
  for (let more = rng.int(4); more > 0; more--)
    lines.splice(rng.int(lines.length + 1), 0, `${pick(NAMES)}: ${rng.int(2) === 0 ? pick(VALUES) : target()}`);
  const path = rng.int(6) === 0 ? pick(['/failed', '/failed?x', ...TARGETS]) : '/_tg';
  const version = rng.int(10) === 0 ? pick(['1.0', '1.2', '2.0', '0.9']) : '1.1';
  const method = rng.int(6) === 0 ? pick(METHODS) : 'GET';
  const body = rng.int(10) === 0 ? pick(['5\r\nhello\r\n0\r\n\r\n', 'hello', 'GET / HTTP/1.1\r\nhost: a\r\n\r\n']) : '';
  // Only a path below /paid costs something, in whatever spelling; what leads up is never allowed.
  const isFree = (each: string): boolean => {
    const [path = ''] = each.split('?', 1);
    if (/\.\.|%2e|\\|\/\/|%2f/i.test(path)) return false;
    const [first = ''] = path.toLowerCase().replace('%70', 'p').slice(1).split(/[/;]/, 1);
    return first !== 'paid';
  };
  // Two headers may name one URL and its target.
  const named = asked.flatMap((each) => [each, each.replace(/^https?:\/\/[^/?#]*/i, '')]);
  return {
    bytes: `${method} ${path} HTTP/${version}\r\n${lines.join('\r\n')}\r\n\r\n${body}`,
    free: new Set(named.filter(isFree)),
  };
}

/** Everything that is answered until the connection ends, or nothing more comes. */
function send(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    let received = '';
    const end = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(received);
    };
    const timer = setTimeout(end, 10_000);
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => (received += text));
    socket.on('error', end);
    socket.on('close', end);
    // Our end closes: the listener answers what is whole, and closes too.
    socket.end(bytes, 'latin1');
  });
}
