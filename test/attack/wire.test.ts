// The wire cases against the forwarding half of the data plane, where every byte that goes upstream is judged by a strict
// reader, and in front of an upstream on node:http. Each is sent whole, byte by byte, cut in two (everywhere with
// TOLLGATE_WIRE=long), behind and in front of a free request, and where a request was served before.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSmallGateway, type SmallGateway } from '../support/small-gateway.ts';
import { createTokens, cuts, inParallel, startWireLab, tokenIn, type WireLab, LONG_MS } from '../support/wire-lab.ts';
import { fence, runWireCase, type Front } from './run-wire-cases.ts';
import type { Seen } from './wire-case.ts';
import { casesFor, WAYS, WIRE_CASES } from './wire-cases.ts';

it('behaviour: every wire case has a name of its own', () => {
  expect(new Set(WIRE_CASES.map(({ name }) => name)).size).toBe(WIRE_CASES.length);
  expect(WIRE_CASES.length).toBeGreaterThan(300);
});

describe('forwarding', () => {
  let lab: WireLab;
  let front: Front;
  let broken = 0;

  beforeAll(async () => {
    lab = await startWireLab();
    front = { port: lab.gateway.port, witness: lab, token: lab.token };
  });
  afterAll(async () => {
    await lab.close();
  });

  describe.each(WAYS)('%s', (how) => {
    it.each(casesFor(how))('attack: a client that sends %s harms nobody', async (_, wire) => {
      if (wire.broken === true) broken++;
      await runWireCase(front, wire, how);
    });
  });

  it.each(casesFor('whole'))(
    'attack: a client that sends %s, cut in two, harms nobody',
    async (_, wire) => {
      const places = cuts(wire.send.length, 0, 5);
      if (wire.broken === true) broken += places.length;
      await inParallel(places, 8, (place) => runWireCase(front, wire, place, false));
      await fence(front);
    },
    LONG_MS,
  );

  it('attack: the upstream saw what was forwarded, no request more, and no byte that should not have been there', () => {
    expect(lab.upstream.violations).toEqual([]);
    expect(lab.gateway.forwards()).toBeGreaterThan(2 * WIRE_CASES.length);
    // Of a body that is broken from its first byte on, the upstream need not see even the head.
    expect(lab.total()).toBeLessThanOrEqual(lab.gateway.forwards());
    expect(lab.total()).toBeGreaterThanOrEqual(lab.gateway.forwards() - broken);
    expect(lab.upstream.requests.filter(({ target }) => target.includes('export'))).toEqual([]);
  });
});

describe('in front of node:http', () => {
  const seen = new Map<string, (Seen & { whole: boolean })[]>();
  const errors: unknown[] = [];
  let total = 0;
  let broken = 0;
  let gateway: SmallGateway;
  let front: Front;
  const server = createServer((req, res) => {
    total++;
    const token = tokenIn(req.url ?? '');
    const { rawHeaders } = req;
    const headers = rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [[name, rawHeaders[i + 1] ?? ''] as const] : []));
    const chunks: Buffer[] = [];
    const request = { method: req.method ?? '', target: req.url ?? '', headers, body: Buffer.alloc(0), whole: false };
    seen.set(token, [...(seen.get(token) ?? []), request]);
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      request.body = Buffer.concat(chunks);
      request.whole = true;
      res.end(token);
    });
  });
  server.on('upgrade', (req, socket) => {
    total++;
    const request = {
      method: 'GET',
      target: req.url ?? '',
      headers: [['upgrade', req.headers.upgrade ?? ''] as const],
      body: Buffer.alloc(0),
      whole: true,
    };
    seen.set(tokenIn(req.url ?? ''), [request]);
    socket.on('error', () => undefined);
    socket.resume();
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code !== 'ECONNRESET' && error.code !== 'HPE_INVALID_EOF_STATE') errors.push(error);
    socket.destroy();
  });

  beforeAll(async () => {
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    gateway = await startSmallGateway({ upstream: new URL(`http://127.0.0.1:${port}`) });
    front = { port: gateway.port, witness: { requestsOf: (token) => seen.get(token) ?? [] }, token: createTokens() };
  });
  afterAll(async () => {
    await gateway.close();
    server.close();
    server.closeAllConnections();
  });

  describe.each(['whole', 'in front'] as const)('%s', (how) => {
    it.each(casesFor(how))('attack: a client that sends %s harms nobody', async (_, wire) => {
      if (wire.broken === true) broken++;
      await runWireCase(front, wire, how);
    });
  });

  it('attack: the node:http server saw what was forwarded, and nothing that it could not read', () => {
    expect(errors).toEqual([]);
    expect(total).toBeLessThanOrEqual(gateway.forwards());
    expect(total).toBeGreaterThanOrEqual(gateway.forwards() - broken);
    expect([...seen.values()].flat().filter(({ target }) => target.includes('export'))).toEqual([]);
  });
});
