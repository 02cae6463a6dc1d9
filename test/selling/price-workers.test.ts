// Prices by what a request asks over two workers, as processes of their own: each says the same price, a quote of one pays at the
// other, a price service is asked once by each, and a changed plan is in force at both.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeUpPayment, readTerms } from '../support/made-up-payment.ts';
import { until } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { openRaw, headerOf } from '../support/raw-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { startBeliever } from './kit.ts';

const files = temporaryFolder();
const serviceAsked: string[] = [];
const service = createServer((req, res) => {
  let text = '';
  req.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  req.on('end', () => {
    serviceAsked.push(text);
    res.writeHead(200, { 'content-type': 'application/json' }).end('{"amount":"0.37"}');
  });
});
let believer: Awaited<ReturnType<typeof startBeliever>>;
let upstream: Upstream;
let tollgate: TollgateProcess;

const configured = (large: string): string =>
  files.write(
    'tollgate.yaml',
    [
      'workers: 2',
      `proxy: { listen: 127.0.0.1:0, upstream: "${upstream.url}", timeouts: { drain_delay: 0s } }`,
      'registry: { listen: 127.0.0.1:0, store: "sqlite:data/t.db" }',
      'admin: { listen: 127.0.0.1:0 }',
      `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x${'1'.repeat(40)}", facilitators: ["${believer.url}"] }]`,
      'selling:',
      '  plans:',
      '    - { id: default, price: { rules: [{ when: { query.size: [large] }, amount: "0.80" }] } }',
      `    - { id: rules, price: { rules: [{ when: { query.size: [large] }, amount: "${large}" }], units: { of: query.n, amount: "0.01", max: 1000, missing: 0 } } }`,
      `    - { id: asks, price: { service: { url: "http://127.0.0.1:${(service.address() as AddressInfo).port}/", min: "0.01", max: "5.00", timeout: 5s, cache: 60s, inputs: [query.*] } } }`,
      'routes:',
      '  - { method: GET, route_pattern: /plain, amount: "0.10" }',
      '  - { method: GET, route_pattern: /gen, amount: "0.10", plan_id: rules }',
      '  - { method: GET, route_pattern: /asked, amount: "0.10", plan_id: asks }',
    ].join('\n'),
  );

beforeAll(async () => {
  await new Promise<void>((resolve) => {
    service.listen(0, '127.0.0.1', resolve);
  });
  [believer, upstream] = await Promise.all([startBeliever(), startUpstream()]);
  tollgate = await startProcess({
    args: ['serve', '-c', configured('0.50')],
    listeners: ['proxy', 'registry', 'admin'],
  });
  for (const worker of [1, 2])
    await tollgate.line(({ msg, number }) => msg === 'a worker is ready' && number === worker);
}, 120_000);
afterAll(async () => {
  await tollgate?.kill();
  await upstream?.close();
  await believer?.close();
  service.closeAllConnections();
  service.close();
  files.remove();
});

let requests = 0;
type Answered = {
  readonly id: string;
  readonly status: number;
  readonly reason: string | undefined;
  readonly terms: string;
};

/** Over a connection of its own, so that either worker may have it. */
async function ask(target: string, payment = ''): Promise<Answered> {
  const id = `request-${++requests}`;
  const client = await openRaw(tollgate.port('proxy'));
  try {
    const paid = payment === '' ? '' : `PAYMENT-SIGNATURE: ${payment}\r\n`;
    client.send(`GET ${target} HTTP/1.1\r\nHost: h\r\nX-Request-Id: ${id}\r\n${paid}\r\n`);
    const answer = await client.answer();
    const reason = headerOf(answer, 'tollgate-reason')?.split(':', 1)[0];
    return { id, status: answer.status, reason, terms: headerOf(answer, 'payment-required') ?? '' };
  } finally {
    client.close();
  }
}

const amountOf = ({ terms }: Answered): number => Number(readTerms(terms).amount);
const all = <T>(count: number, one: (n: number) => Promise<T>): Promise<readonly T[]> =>
  Promise.all(Array.from({ length: count }, (_, n) => one(n)));
/** Which worker answered, by the request. */
const workersOf = (answers: readonly Answered[]): Promise<readonly number[]> =>
  until('all are logged', async () => {
    const by = new Map(
      tollgate.lines.flatMap((line) =>
        line.msg === 'request' ? [[String(line['request_id']), Number(line['worker'])] as const] : [],
      ),
    );
    const workers = answers.flatMap(({ id }) => by.get(id) ?? []);
    return workers.length === answers.length && workers;
  });

/** Asks for the targets of `count` requests, and again until each worker has answered some: a busy machine may give all to one. */
async function askBoth(count: number, target: (n: number) => string): Promise<readonly Answered[]> {
  const answers: Answered[] = [];
  return until('both workers have answered', async () => {
    answers.push(...(await all(count, (n) => ask(target(n)))));
    return new Set(await workersOf(answers)).size === 2 && answers;
  });
}

test('behaviour: both workers say the price of what is asked', async () => {
  const answers = await askBoth(50, (n) => `/gen?size=${n % 2 === 0 ? 'large' : 'small'}&n=${n % 5}`);
  expect(answers.map(amountOf)).toEqual(answers.map((_, n) => (n % 2 === 0 ? 500_000 : 100_000) + (n % 5) * 10_000));
});

test('behaviour: both workers say the price of the plan `default` for a route that names none', async () => {
  const answers = await askBoth(24, (n) => `/plain?size=${n % 2 === 0 ? 'large' : 'small'}`);
  expect(answers.map(amountOf)).toEqual(answers.map((_, n) => (n % 2 === 0 ? 800_000 : 100_000)));
});

test('behaviour: a quote of one worker pays at the other what it says, and for nothing else', async () => {
  // A busy machine may give all to one worker.
  await until('a quote of one worker was paid at the other', async () => {
    const quotes = await all(24, (n) => ask(`/gen?size=large&n=${n}`));
    const payments = quotes.map(({ terms }) => makeUpPayment(readTerms(terms), Date.now()));
    const before = upstream.seen.length;
    const others = await all(24, (n) => ask(`/gen?size=large&n=${n + 1}`, payments[n]));
    expect(others.map(({ status, reason }) => `${status} ${reason}`)).toEqual(others.map(() => '402 quote_mismatch'));
    const paid = await all(24, (n) => ask(`/gen?n=${n}&size=large`, payments[n]));
    expect(paid.map(({ status }) => status)).toEqual(paid.map(() => 200));
    const told = upstream.seen
      .slice(before)
      .map(
        ({ url, headers }) =>
          `${new URL(url, 'http://h').searchParams.get('n')} for ${String(headers['tollgate-amount'])}`,
      );
    expect(new Set(told)).toEqual(new Set(paid.map((_, n) => `${n} for 0.${50 + n}`)));
    expect(told).toHaveLength(paid.length);
    const [asking, paying] = [await workersOf(quotes), await workersOf(paid)];
    return asking.some((worker, n) => worker !== paying[n]);
  });
});

test('behaviour: a price service is asked once by each worker for what is equal', async () => {
  const answers = await all(32, () => ask('/asked?size=large'));
  expect(answers.map(amountOf)).toEqual(answers.map(() => 370_000));
  const workers = new Set(await workersOf(answers)).size;
  expect(serviceAsked).toHaveLength(workers);
});

test('behaviour: a changed plan is in force at both workers, and what was quoted before still pays', async () => {
  const quotes = await all(8, (n) => ask(`/gen?size=large&n=${n}`));
  configured('0.60');
  tollgate.signal('SIGHUP');
  await expect
    .poll(async () => [...new Set((await all(16, () => ask('/gen?size=large&n=0'))).map(amountOf))], {
      timeout: 30_000,
    })
    .toEqual([600_000]);
  const paid = await all(8, (n) =>
    ask(`/gen?size=large&n=${n}`, makeUpPayment(readTerms(quotes[n]?.terms ?? ''), Date.now())),
  );
  expect(paid.map(({ status }) => status)).toEqual(paid.map(() => 200));
  const told = upstream.seen.slice(-8).map(({ headers }) => headers['tollgate-amount']);
  expect(new Set(told)).toEqual(new Set(paid.map((_, n) => `0.5${n}`)));
});
