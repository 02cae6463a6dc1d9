// Questions that a decision listener waits with, for something that does not come: each has its answer within `answer_within`.
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, decidedOf, questionOf, SECRET, send } from '../support/asker.ts';
import { startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';
import { openRaw } from '../support/raw-client.ts';

const ANSWER_WITHIN_MS = 1000;
let paid: PaidTollgate;
/** A service of the operator that says prices, and never does. */
const service = createServer(() => undefined);

beforeAll(async () => {
  await once(service.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}/price`;
  paid = await startPaidTollgate({
    routes: ['GET /thing/* 0.10'],
    more: [
      'selling:',
      `  plans: [{ id: default, price: { service: { url: "${url}", min: "0.01", max: "1.00", timeout: 10s } } }]`,
      `decision: { listen: 127.0.0.1:0, dialect: caddy, secret: ${SECRET}, answer_within: ${ANSWER_WITHIN_MS}ms }`,
    ].join('\n'),
    listeners: ['decision'],
  });
}, 180_000);
afterAll(async () => {
  await paid?.stop();
  service.closeAllConnections();
  service.close();
});

test('behaviour: a price that is not said in time is no reason to answer later', async () => {
  const started = performance.now();
  const late = await ask(paid.tollgate().port('decision'), 'caddy', { target: '/thing/priced' });
  expect(performance.now() - started).toBeLessThan(3 * ANSWER_WITHIN_MS);
  expect([late.status, late.header('retry-after')]).toEqual([503, '1']);
  expect(JSON.parse(late.body)).toMatchObject({ code: 'price_unavailable' });
});

/** The bytes of a question whose body has begun. */
function begunBody(): string {
  const question = questionOf('caddy', { target: '/free/a' }).replace(/\r\n\r\n$/, '\r\n');
  return `${question}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n`;
}

test('behaviour: a body that does not end is no reason to answer later', async () => {
  const started = performance.now();
  const answer = await send(paid.tollgate().port('decision'), begunBody());
  expect(performance.now() - started).toBeLessThan(3 * ANSWER_WITHIN_MS);
  expect(JSON.parse(decidedOf('caddy', answer).body)).toMatchObject({ code: 'request_timeout' });
});

test('behaviour: a question that breaks off in its body is in flight no more', async () => {
  for (let times = 0; times < 3; times++) {
    const client = await openRaw(paid.tollgate().port('decision'));
    client.send(begunBody());
    client.close();
  }
  await until('nothing is in flight', async () => {
    const text = await (await fetch(`${paid.tollgate().url('admin')}/metrics`)).text();
    return text.includes('\ntollgate_requests_in_flight 0\n') && text.includes('listener="decision"');
  });
});
