// Answers before speed: what every contender has to answer, and what the upstream must have seen of it, looked at once
// before it is measured. A server that is fast because it forwards half of a body, or lets a paid path through, is not
// measured but reported.
import { createHash } from 'node:crypto';
import { request, type IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { isIdle } from './process.ts';
import { lineOf } from './question.ts';
import { DOWNLOAD, DOWNLOAD_PATH, HASH_HEADER, POST_BODY, UPSTREAM_BODY, type Seen } from './upstream-answers.ts';

export type Answer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer };
export type Ask = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: Buffer | string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** What was seen by the upstream so far. */
export type Witness = () => Promise<Seen>;

/** One request on a connection of its own. */
export function ask(port: number, { method, path, body, headers = {} }: Ask): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const call = request(
      { port, host: '127.0.0.1', method, path, headers: { ...headers, ...length }, agent: false },
      (res) => {
        buffer(res).then(
          (whole) => resolve({ status: res.statusCode ?? 0, headers: res.headers, body: whole }),
          reject,
        );
      },
    );
    call.on('error', reject);
    call.end(body);
  });
}

export function witnessOf(controlPort: number): Witness {
  return async () => {
    const { body } = await ask(controlPort, { method: 'GET', path: '/seen' });
    const seen: Seen = JSON.parse(body.toString());
    return seen;
  };
}

/** A free request crosses with its target, its method and, where it has one, its body; its answer comes back whole. */
export async function checkFree(port: number, witness: Witness, method: 'GET' | 'POST', path: string): Promise<void> {
  const before = await witness();
  const body = method === 'POST' ? { body: POST_BODY, headers: { [HASH_HEADER]: '1' } } : {};
  const answer = await ask(port, { method, path, ...body });
  const seen = await witness();
  expect(answer.status === 200, `answers ${answer.status} to a free request`);
  expect(answer.body.toString() === UPSTREAM_BODY, 'changes the body of an answer');
  expect(answer.headers['content-type'] === 'application/json', 'loses the type of an answer');
  expect(seen.requests === before.requests + 1, `makes ${seen.requests - before.requests} requests of one`);
  expect(
    seen.method === method && seen.target === path,
    `asks for ${seen.method} ${seen.target}, not ${method} ${path}`,
  );
  if (method === 'POST') expect(seen.hash === sha256(POST_BODY), 'changes the body of a request');
}

/** A protected path is answered with 402 and nothing reaches the upstream. Returns the answer. */
export async function checkDemand(port: number, witness: Witness, path: string): Promise<Answer> {
  const before = await witness();
  const answer = await ask(port, { method: 'GET', path });
  const seen = await witness();
  expect(answer.status === 402, `answers ${answer.status} to an unpaid request`);
  expect(answer.headers['payment-required'] !== undefined, 'has no PAYMENT-REQUIRED header');
  expect(seen.requests === before.requests, 'lets an unpaid request through');
  return answer;
}

/** The 402 as the interface has it (section 7.1), for Tollgate's own. */
export function checkInterfaceBody({ body, headers }: Answer, amount: string): void {
  const demand: unknown = JSON.parse(body.toString());
  const { error, charge_id: chargeId, x402_requirements: requirements } = readObject(demand);
  expect(error === 'Payment Required', 'has another `error` in a 402');
  expect(/^chg_[A-Za-z0-9_-]{1,124}$/.test(String(chargeId)), 'has a charge_id of another form');
  expect(readObject(demand)['amount'] === amount, `asks for ${String(readObject(demand)['amount'])}, not ${amount}`);
  expect(readObject(requirements)['external_ref'] === chargeId, 'has an external_ref that is not the charge id');
  const header: unknown = JSON.parse(Buffer.from(String(headers['payment-required']), 'base64').toString());
  expect(readObject(header)['x402Version'] === 2, 'has no x402 v2 header');
}

/** A question about a free path is allowed with no body, and nothing reaches the upstream. */
export async function checkAllow(port: number, witness: Witness, path: string): Promise<void> {
  const before = await witness();
  const answer = await askWhether(port, path);
  expect(answer.status === 200 && answer.body.length === 0, `answers ${answer.status} to a question about a free path`);
  expect(answer.headers['tollgate-decision'] === 'allow', 'does not allow a free path');
  expect(answer.headers['tollgate-target'] === path, `allows ${String(answer.headers['tollgate-target'])}`);
  const strange = await ask(port, { method: 'GET', path: '/' });
  expect(strange.status === 403, `answers ${strange.status} to a peer that may not ask`);
  expect((await witness()).requests === before.requests, 'forwards what it is asked about');
}

/** A question about a path that costs something is answered with the 402. */
export async function checkAskedDemand(port: number, path: string, amount: string): Promise<void> {
  const answer = await askWhether(port, path);
  expect(answer.status === 402, `answers ${answer.status} to a question about an unpaid path`);
  checkInterfaceBody(answer, amount);
}

function askWhether(port: number, target: string): Promise<Answer> {
  return ask(port, { method: 'GET', ...lineOf('question', target) });
}

/** A constant answer that nothing stands behind. */
export async function checkConstant(port: number, body: string): Promise<void> {
  const answer = await ask(port, { method: 'GET', path: '/' });
  expect(answer.status === 200 && answer.body.toString() === body, 'answers something else than it was given');
}

/**
 * How many requests reached the upstream, once no more come: what a load left under way when it stopped may still be
 * queued in a proxy that waits for a core, and would be counted for whoever is measured next.
 */
export async function settledCount(witness: Witness, proxyPid: number): Promise<number> {
  let { requests } = await witness();
  for (let look = 0, quiet = 0; look < LOOKS && quiet < QUIET_LOOKS; look++) {
    await setTimeout(LOOK_MS);
    const idle = isIdle(proxyPid);
    const now = (await witness()).requests;
    quiet = idle && now === requests ? quiet + 1 : 0;
    requests = now;
  }
  return requests;
}

const LOOK_MS = 25;
const QUIET_LOOKS = 2;
const LOOKS = 200;

/**
 * What is wrong with the upstream's own count: every answer must have reached it once (`forwarded`), and beyond them only
 * what was under way when the load stopped; or, where nothing may be forwarded, none.
 */
export function countFault(
  reached: number,
  forwarded: { readonly answers: number; readonly underWay: number } | undefined,
): string | undefined {
  if (forwarded === undefined) return reached === 0 ? undefined : `${reached} requests reached the upstream, none may`;
  const { answers, underWay } = forwarded;
  if (reached >= answers && reached <= answers + underWay) return undefined;
  return `${reached} requests reached the upstream for ${answers} answers and at most ${underWay} under way`;
}

export async function checkDownload(port: number, witness: Witness): Promise<void> {
  const before = await witness();
  const answer = await ask(port, { method: 'GET', path: DOWNLOAD_PATH });
  expect(answer.status === 200, `answers ${answer.status} to a download`);
  expect(sha256(answer.body) === sha256(DOWNLOAD()), 'changes a download');
  expect((await witness()).requests === before.requests + 1, 'asks for a download more than once');
}

export async function checkUpload(port: number, witness: Witness, path: string): Promise<void> {
  const before = await witness();
  const body = DOWNLOAD();
  const answer = await ask(port, { method: 'POST', path, body, headers: { [HASH_HEADER]: '1' } });
  const seen = await witness();
  expect(answer.status === 200, `answers ${answer.status} to an upload`);
  expect(seen.bodyBytes - before.bodyBytes === body.length, 'loses bytes of an upload');
  expect(seen.hash === sha256(body), 'changes an upload');
}

export function expect(holds: boolean, complaint: string): void {
  if (!holds) throw new Error(`it ${complaint}`);
}

function readObject(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new Error('it answers something that is not an object');
  return { ...value };
}

function sha256(bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
