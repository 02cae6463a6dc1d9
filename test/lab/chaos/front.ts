// A proxy that is there already, in front of the API: it asks Tollgate's decision listener whether a request may pass, under one id
// also when it has to ask again, forwards what it was allowed, and reports what got no usable answer.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import type { Journal } from './journal.ts';

export const FRONT_SECRET = 'a-secret-of-the-front-of-chaos';

export type Front = { readonly url: string; readonly close: () => Promise<void> };

type FrontOptions = { readonly decision: number; readonly api: string; readonly journal: Journal };
type Answer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer };
type Call = { readonly method: string; readonly path: string; readonly headers: Readonly<Record<string, string>> };

/** Times that it asks and reports when nothing is heard: a process that was killed is there again soon. */
const TRIES = 4;
const PAUSE_MS = 250;
const FIRST_SERVER_ERROR = 500;
const RECEIPTS = ['payment-response', 'x-payment-response'];
/** Headers of an answer that go on to the client. */
const PASSED = ['content-type', 'retry-after', 'payment-required', ...RECEIPTS, 'tollgate-reason', 'x-run'];

export async function startFront({ decision, api, journal }: FrontOptions): Promise<Front> {
  const tollgate = `http://127.0.0.1:${decision}`;
  const again = async (call: Call, stop: AbortSignal): Promise<Answer | undefined> => {
    for (let tries = 0; tries < TRIES && !stop.aborted; tries++) {
      const answer = await ask(tollgate, call, undefined, stop).catch(() => undefined);
      if (answer !== undefined) return answer;
      await setTimeout(PAUSE_MS);
    }
    return undefined;
  };
  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const { method = '', url: target = '', headers } = req;
    const n = Number(/^\/paid\/(\d+)/.exec(target)?.[1] ?? -1);
    const note = (what: Journal['front'][number]['what']): void => void journal.front.push({ n, what });
    const gone = new AbortController();
    res.on('close', () => gone.abort());
    const body = await buffer(req);
    const question = {
      ...{ 'x-forwarded-method': method, 'x-forwarded-uri': target, 'x-forwarded-host': 'api.example.com' },
      ...{ 'x-forwarded-proto': 'https', 'tollgate-secret': FRONT_SECRET },
    };
    const shown = given(headers, ['payment-signature', 'x-payment']);
    const call = { method: 'GET', path: '/', headers: { ...question, ...shown, 'tollgate-request-id': randomUUID() } };
    const decided = await again(call, gone.signal);
    if (decided === undefined) return pass(res, UNANSWERED);
    if (decided.status !== 200 || decided.headers['tollgate-decision'] !== 'allow') return pass(res, decided);
    note('allowed');
    const charge = given(decided.headers, ['tollgate-charge-id']);
    const sent = { method, path: target, headers: { ...charge, 'content-length': String(body.length) } };
    const answer = await ask(api, sent, body, gone.signal).catch(() => undefined);
    if (answer !== undefined && answer.status < FIRST_SERVER_ERROR)
      return pass(res, { ...answer, headers: { ...answer.headers, ...given(decided.headers, RECEIPTS) } });
    // Whoever left gets no report: nothing is known of the answer.
    if (gone.signal.aborted) return;
    const report = { method: 'GET', path: '/failed', headers: { ...question, ...charge } };
    const told = await again(report, new AbortController().signal);
    note(told === undefined ? 'report lost' : told.body.includes('"upstream_failed"') ? 'reported' : 'report refused');
    pass(res, told ?? UNANSWERED);
  };
  const server = createServer((req, res) => void serve(req, res).catch(() => res.destroy()));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const UNANSWERED: Answer = {
  status: 503,
  headers: { 'content-type': 'application/json' },
  body: Buffer.from('{"code":"front_unanswered"}'),
};

function given(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
  );
}

function pass(res: ServerResponse, { status, headers, body }: Answer): void {
  res.writeHead(status, given(headers, PASSED)).end(body);
}

async function ask(base: string, call: Call, body: Buffer | undefined, signal: AbortSignal): Promise<Answer> {
  const { method, path, headers } = call;
  const outgoing = request(base + path, { method, headers: { ...headers }, agent: false, signal });
  outgoing.end(body);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, body: await buffer(response) };
}
