// A body that stops being HTTP in the middle, under a payment: its client is refused, and is told where its money is.
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startBeliever } from '../selling/kit.ts';
import { makeUpPayment, readTerms } from '../support/made-up-payment.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { headerOf, openRaw, type RawAnswer, type RawClient } from '../support/raw-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const BROKEN = 'zz\r\n';
const files = temporaryFolder();
/** Set while settlements wait. */
let settling: Promise<void> | undefined;
let believer: Awaited<ReturnType<typeof startBeliever>>;
let upstream: Upstream;
let tollgate: TollgateProcess;

beforeAll(async () => {
  believer = await startBeliever((operation) => (operation === 'settle' ? settling : undefined));
  upstream = await startUpstream((req, res) => {
    req.resume().on('end', () => res.end('done'));
  });
  const file = files.write(
    'tollgate.yaml',
    [
      `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url} }`,
      'registry: { listen: 127.0.0.1:0, store: sqlite:data/tollgate.db }',
      'admin: { listen: 127.0.0.1:0 }',
      `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x${'1'.repeat(40)}", facilitators: ["${believer.url}"] }]`,
      'routes: [{ method: "*", route_pattern: /paid, amount: "0.10" }]',
    ].join('\n'),
  );
  tollgate = await startProcess({ args: ['serve', '-c', file], listeners: ['proxy', 'registry', 'admin'] });
}, 120_000);
afterAll(async () => {
  await tollgate?.kill();
  await upstream?.close();
  await believer?.close();
  files.remove();
});

async function credentialFor(method: string): Promise<string> {
  const demanded = await fetch(`${tollgate.url('proxy')}/paid`, { method });
  await demanded.arrayBuffer();
  return makeUpPayment(readTerms(demanded.headers.get('payment-required') ?? ''), Date.now());
}

/** Sends the head of a chunked body, and `body` right behind it. */
async function upload(method: string, credential: string, body: string): Promise<RawClient> {
  const client = await openRaw(Number(new URL(tollgate.url('proxy')).port));
  client.send(
    `${method} /paid HTTP/1.1\r\nHost: h\r\nPAYMENT-SIGNATURE: ${credential}\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
  );
  return client;
}

async function refused(client: RawClient): Promise<{ answer: RawAnswer; said: Record<string, unknown> }> {
  const answer = await client.answer();
  const said = JSON.parse(answer.body.toString()) as Record<string, unknown>;
  expect([answer.status, said['code'], headerOf(answer, 'connection')]).toEqual([400, 'request_malformed', 'close']);
  client.socket.end();
  // Nothing follows the refusal.
  expect([await client.closed, client.rest().length]).toEqual(['fin', 0]);
  return { answer, said };
}

async function payWhole(method: string, credential: string): Promise<[number, string]> {
  const response = await fetch(`${tollgate.url('proxy')}/paid`, {
    method,
    headers: { 'payment-signature': credential },
  });
  return [response.status, await response.text()];
}

test('behaviour: a body that breaks after it was paid for: the refusal tells its payer so, who fetches the answer without another charge', async () => {
  const credential = await credentialFor('POST');
  const [asked, settled] = [upstream.seen.length, believer.calls.length + 2];
  const client = await upload('POST', credential, '3\r\nabc\r\n');
  await vi.waitFor(() => expect(upstream.seen.length).toBe(asked + 1), { interval: 5, timeout: 30_000 });
  client.send(BROKEN);
  const { answer, said } = await refused(client);
  expect(said).toMatchObject({
    charge_id: expect.stringMatching(/^chg_/) as string,
    charged: true,
    retry_until: expect.any(String) as string,
  });
  expect(said['detail']).toMatch(/0\.10 USDC on base-sepolia was charged\. Send the very same request/);
  expect(headerOf(answer, 'payment-response')).toBeDefined();
  expect(headerOf(answer, 'retry-after')).toBe('2');
  expect(await payWhole('POST', credential)).toEqual([200, 'done']);
  expect(believer.calls.length).toBe(settled);
});

test('behaviour: trailers that are too large after it was paid for: the refusal tells its payer so', async () => {
  const asked = upstream.seen.length;
  const client = await upload('POST', await credentialFor('POST'), '3\r\nabc\r\n');
  await vi.waitFor(() => expect(upstream.seen.length).toBe(asked + 1), { interval: 5, timeout: 30_000 });
  client.send(`0\r\n${`X: ${'y'.repeat(1000)}\r\n`.repeat(40)}`);
  const answer = await client.answer();
  expect([answer.status, JSON.parse(answer.body.toString())]).toMatchObject([
    431,
    { code: 'headers_too_large', charged: true },
  ]);
});

test('behaviour: a body that breaks before the upstream answered a GET: nothing is charged, and the refusal says so', async () => {
  const credential = await credentialFor('GET');
  const asked = upstream.seen.length;
  const client = await upload('GET', credential, '3\r\nabc\r\n');
  await vi.waitFor(() => expect(upstream.seen.length).toBe(asked + 1), { interval: 5, timeout: 30_000 });
  client.send(BROKEN);
  const { answer, said } = await refused(client);
  expect(said).toMatchObject({ charge_id: expect.stringMatching(/^chg_/) as string, charged: false });
  expect(headerOf(answer, 'payment-response')).toBeUndefined();
  expect(await payWhole('GET', credential)).toEqual([200, 'done']);
});

test.each(['GET', 'POST'])(
  'behaviour: a body that breaks while the payment of a %s is verified: nothing is claimed, and the refusal says so',
  async (method) => {
    const credential = await credentialFor(method);
    const [asked, calls] = [upstream.seen.length, believer.calls.length];
    const { said } = await refused(await upload(method, credential, BROKEN));
    expect(said).toMatchObject({
      charged: false,
      detail: 'The rest of the request is not well-formed HTTP/1.1; nothing was charged.',
    });
    expect([upstream.seen.length, believer.calls.slice(calls)]).toEqual([asked, ['verify']]);
    expect(await payWhole(method, credential)).toEqual([200, 'done']);
  },
);

test('behaviour: a body that breaks while its payment is settled: the refusal waits for the end, and says that it was charged', async () => {
  const credential = await credentialFor('POST');
  const [asked, calls] = [upstream.seen.length, believer.calls.length];
  const held = Promise.withResolvers<void>();
  settling = held.promise;
  const client = await upload('POST', credential, '3\r\nabc\r\n');
  await vi.waitFor(() => expect(believer.calls.slice(calls)).toEqual(['verify', 'settle']), { timeout: 30_000 });
  client.send(BROKEN);
  // The process has read it once it answers another one.
  await fetch(`${tollgate.url('proxy')}/free`);
  settling = undefined;
  held.resolve();
  const { answer, said } = await refused(client);
  expect(said).toMatchObject({ charge_id: expect.stringMatching(/^chg_/) as string, charged: true });
  expect(headerOf(answer, 'payment-response')).toBeDefined();
  expect(upstream.seen.slice(asked).map(({ url }) => url)).not.toContain('/paid');
  expect(await payWhole('POST', credential)).toEqual([200, 'done']);
  expect(believer.calls.slice(calls)).toEqual(['verify', 'settle']);
});
