// An exchange whose client does not wait for the response.
import { once } from 'node:events';
import { afterEach, expect, it } from 'vitest';
import { LISTENER_REFUSALS } from '../../src/domain/problem.ts';
import { Exchange } from '../../src/gateway/exchange.ts';
import type { ExchangeContext } from '../../src/gateway/exchange-context.ts';
import { systemClock } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import { createListener } from '../../src/host/server.ts';
import { createWriteBatch } from '../../src/host/write-batch.ts';
import { openRaw } from '../support/raw-client.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

it('behaviour: whether a response of ours was delivered is told also if the client left before it', async () => {
  const log = createLog('error', () => undefined, systemClock.now);
  const telemetry = { begin: () => undefined, end: () => undefined };
  const context = { clock: systemClock, writeBatch: createWriteBatch(), telemetry, log } as Partial<ExchangeContext>;
  const arrived = Promise.withResolvers<Exchange>();
  const listener = createListener(
    {
      name: 'proxy',
      listen: { host: '127.0.0.1', port: 0 },
      limits: { headers: 16_384, connections: 10 },
      timeouts: { headersMs: 5000, idleMs: 5000 },
      refusals: LISTENER_REFUSALS,
      log,
    },
    { request: (req, res) => arrived.resolve(new Exchange(context as ExchangeContext, req, res)) },
  );
  const { port } = await listener.start();
  closers.push(() => listener.drain(0, 0));
  const client = await openRaw(port);
  closers.push(client.close);
  client.send('GET /paid HTTP/1.1\r\nHost: h\r\n\r\n');
  const exchange = await arrived.promise;
  const closed = once(exchange.res, 'close');
  client.close();
  await closed;
  const told = Promise.withResolvers<boolean>();
  exchange.respond({
    kind: 'response',
    response: { status: 200, headers: [], body: 'kept' },
    outcome: 'paid',
    reason: 'replayed',
    chargeId: 'chg_1',
    routeId: 'r',
    delivered: told.resolve,
  });
  expect(await told.promise).toBe(false);
}, 5000);
