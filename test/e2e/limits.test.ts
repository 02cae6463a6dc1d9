// The limits of a configuration, each at its value and one past it, on real listeners of a real process; and clients and
// upstreams that take their time. Load comes from a process of its own where it is more than a handful of connections.
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { makeUpPayment, readTerms } from '../support/made-up-payment.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { headerOf, openRaw, type RawAnswer, type RawClient } from '../support/raw-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const files = temporaryFolder();
const clients: RawClient[] = [];
let upstream: Upstream;
let written = 0;
const held = new Set<() => void>();

beforeAll(async () => {
  upstream = await startUpstream((req, res) => {
    if (req.url === '/held') {
      held.add(() => res.end('held'));
    } else if (req.url === '/never') {
      req.resume();
    } else if (req.url === '/half') {
      res.writeHead(200, { 'content-length': '10' });
      res.write('half');
    } else if (req.url === '/endless') {
      const more = (): void => {
        while (!res.destroyed) {
          written += 65_536;
          if (!res.write(Buffer.alloc(65_536))) break;
        }
      };
      res.on('drain', more);
      more();
    } else {
      req.resume();
      req.on('end', () => res.end('fine'));
    }
  });
});
afterAll(async () => {
  await upstream.close();
  files.remove();
});

async function start(name: string, proxy: string, facilitator = 'http://127.0.0.1:1'): Promise<TollgateProcess> {
  const file = files.write(
    `${name}.yaml`,
    [
      `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url}, ${proxy} }`,
      `registry: { listen: 127.0.0.1:0, store: sqlite:${name}/tollgate.db }`,
      'admin: { listen: 127.0.0.1:0 }',
      `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x${'1'.repeat(40)}", facilitators: [${facilitator}] }]`,
      'routes: [{ route_pattern: "/paid/*", method: GET, amount: "0.10" }]',
      'log: { access: false }',
    ].join('\n'),
  );
  return startProcess({ args: ['serve', '-c', file], listeners: ['proxy', 'registry', 'admin'] });
}

async function openClient(tollgate: TollgateProcess): Promise<RawClient> {
  const client = await openRaw(tollgate.port('proxy'));
  clients.push(client);
  return client;
}

function codeOf(answer: RawAnswer): string {
  return answer.status >= 400 && answer.status !== 402 ? String(JSON.parse(answer.body.toString()).code) : '';
}

describe('as they are by default', () => {
  let tollgate: TollgateProcess;
  beforeAll(async () => {
    tollgate = await start('default', 'timeouts: { drain_delay: 0s }');
  });
  afterAll(() => tollgate?.kill());
  const ask = async (head: string): Promise<RawAnswer> => {
    const client = await openClient(tollgate);
    client.send(`${head}\r\nHost: h\r\nConnection: close\r\n\r\n`);
    const answer = await client.answer();
    client.close();
    return answer;
  };

  test('refuses: a target of 8,193 bytes; 8,192 are matched and forwarded', async () => {
    const free = `/${'a'.repeat(8191)}`;
    const paid = `/paid/${'a'.repeat(8192 - 6)}`;
    const query = `/q?${'a'.repeat(8192 - 3)}`;
    for (const [target, status] of [
      [free, 200],
      [paid, 402],
      [query, 200],
    ] as const) {
      expect(target.length).toBe(8192);
      expect((await ask(`GET ${target} HTTP/1.1`)).status).toBe(status);
      const longer = await ask(`GET ${target}a HTTP/1.1`);
      expect([longer.status, codeOf(longer)]).toEqual([414, 'target_too_long']);
    }
    expect(upstream.seen.every(({ url }) => url.length <= 8192)).toBe(true);
  });

  test('refuses: request line and headers over 32,768 bytes', async () => {
    const head = (bytes: number): string => {
      const rest = 'GET /paid/a HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX: \r\n\r\n'.length;
      return `GET /paid/a HTTP/1.1\r\nX: ${'x'.repeat(bytes - rest)}`;
    };
    expect((await ask(head(32_768))).status).toBe(402);
    // The parser leaves what stands between names and values out of its count.
    expect((await ask(head(32_768 + 60))).status).toBe(431);
  });

  test('refuses: a credential over 16 KiB of base64', async () => {
    const credential = (bytes: number): string => {
      const bare = { x402Version: 2, accepted: {}, payload: {}, a: '', b: '' };
      const room = bytes - JSON.stringify(bare).length;
      const text = JSON.stringify({ ...bare, a: 'x'.repeat(room >> 1), b: 'x'.repeat(room - (room >> 1)) });
      return Buffer.from(text).toString('base64');
    };
    const limit = credential(12_288);
    expect(limit.length).toBe(16_384);
    const taken = await ask(`GET /paid/a HTTP/1.1\r\nPAYMENT-SIGNATURE: ${limit}`);
    // It is read, and found to be no payment; what is longer is not even read.
    expect(taken.body.toString()).not.toContain('longer than 16 KiB');
    const longer = await ask(`GET /paid/a HTTP/1.1\r\nPAYMENT-SIGNATURE: ${credential(12_289)}`);
    expect([longer.status, codeOf(longer)]).toEqual([400, 'payment_malformed']);
    expect(longer.body.toString()).toContain('longer than 16 KiB');
  });
});

describe('made small', () => {
  let tollgate: TollgateProcess;
  beforeAll(async () => {
    tollgate = await start(
      'small',
      'timeouts: { connect: 2s, headers: 2s, idle: 2s, upload: 1s, drain_delay: 0s }, limits: { connections: 10, in_flight: 3 }',
    );
  });
  afterAll(() => tollgate?.kill());
  const none = async (): Promise<void> => {
    for (const client of clients.splice(0)) client.close();
    await vi.waitFor(async () => {
      const text = await (await fetch(`${tollgate.url('admin')}/metrics`)).text();
      expect(text).toMatch(/^tollgate_requests_in_flight 0$/m);
    });
  };

  test('refuses: one connection more than the limit', async () => {
    await none();
    const open = await vi.waitFor(async () => {
      const all: RawClient[] = [];
      while (all.length < 10) all.push(await openClient(tollgate));
      all[9]?.send('GET /paid/a HTTP/1.1\r\nHost: h\r\n\r\n');
      expect((await all[9]?.answer())?.status).toBe(402);
      return all;
    });
    const more = await openRaw(tollgate.port('proxy'));
    await more.closed;
    await tollgate.line(({ msg }) => msg === 'connection limit reached');
    open[0]?.send('GET /paid/a HTTP/1.1\r\nHost: h\r\n\r\n');
    expect((await open[0]?.answer())?.status).toBe(402);
  });

  test('refuses: one request in flight more than the limit, with when to come back', async () => {
    await none();
    const seen = upstream.seen.length;
    const flying = await Promise.all([1, 2, 3].map(() => openClient(tollgate)));
    for (const client of flying) client.send('GET /held HTTP/1.1\r\nHost: h\r\n\r\n');
    await vi.waitFor(() => expect(upstream.seen.length).toBe(seen + 3), { interval: 5 });
    const fourth = await openClient(tollgate);
    fourth.send('GET /free HTTP/1.1\r\nHost: h\r\n\r\n');
    const answer = await fourth.answer();
    expect([answer.status, codeOf(answer), headerOf(answer, 'retry-after')]).toEqual([
      503,
      'too_many_requests_in_flight',
      '1',
    ]);
    for (const release of held) release();
    held.clear();
    for (const client of flying) expect((await client.answer()).status).toBe(200);
    fourth.send('GET /free HTTP/1.1\r\nHost: h\r\n\r\n');
    expect((await fourth.answer()).status).toBe(200);
  });

  test('refuses: one request of a client in flight more than its limit; others are served', async () => {
    const own = await start(
      'per-client',
      'trusted_proxies: [127.0.0.1/32], timeouts: { drain_delay: 0s }, limits: { in_flight_per_client: 2 }',
    );
    try {
      const ask = async (path: string, address: string): Promise<RawClient> => {
        const client = await openClient(own);
        client.send(`GET ${path} HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: ${address}\r\n\r\n`);
        return client;
      };
      const flying = [await ask('/held', '192.0.2.1'), await ask('/held', '192.0.2.1')];
      await vi.waitFor(() => expect(held.size).toBe(2));
      const third = await (await ask('/free', '192.0.2.1')).answer();
      expect([third.status, codeOf(third), headerOf(third, 'retry-after')]).toEqual([
        503,
        'too_many_requests_in_flight',
        '1',
      ]);
      expect((await (await ask('/free', '192.0.2.2')).answer()).status).toBe(200);
      for (const release of held) release();
      held.clear();
      for (const client of flying) expect((await client.answer()).status).toBe(200);
      expect((await (await ask('/free', '192.0.2.1')).answer()).status).toBe(200);
    } finally {
      await own.kill();
    }
  });

  test('attack: headers that come byte by byte are 408, and others are served meanwhile', async () => {
    await none();
    const slow = await openClient(tollgate);
    slow.send('GET /free HTTP/1.1\r\nHost: h\r\n');
    const trickle = setInterval(() => slow.socket.writable && slow.send('X: y\r\n'), 50);
    expect((await fetch(`${tollgate.url('proxy')}/free`)).status).toBe(200);
    const answer = await slow.answer();
    clearInterval(trickle);
    expect(answer.status).toBe(408);
    await slow.closed;
  });

  test('attack: a body that stops is 408 and its connection ends, one that goes on slowly is served', async () => {
    await none();
    const [stopped, slow] = await Promise.all([openClient(tollgate), openClient(tollgate)]);
    const post = 'POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\n\r\n';
    stopped.send(`${post}half`);
    slow.send(post);
    const since = performance.now();
    let sent = 0;
    const trickle = setInterval(() => {
      if (sent++ < 12) slow.send('b');
    }, 100);
    const answer = await stopped.answer();
    expect([answer.status, codeOf(answer), headerOf(answer, 'connection')]).toEqual([408, 'request_timeout', 'close']);
    await stopped.closed;
    expect((await slow.answer()).status).toBe(200);
    clearInterval(trickle);
    expect(performance.now() - since).toBeGreaterThan(1000);
  });

  test('attack: a client that does not read stops the upstream, holds no memory and is ended', async () => {
    await none();
    const client = await openClient(tollgate);
    client.socket.pause();
    written = 0;
    const before = memoryMb(tollgate.pid);
    client.send('GET /endless HTTP/1.1\r\nHost: h\r\n\r\n');
    await vi.waitFor(async () => {
      const text = await (await fetch(`${tollgate.url('admin')}/metrics`)).text();
      expect(text).toMatch(/^tollgate_requests_in_flight 1$/m);
    });
    await vi.waitFor(
      async () => {
        const text = await (await fetch(`${tollgate.url('admin')}/metrics`)).text();
        expect(text).toMatch(/^tollgate_requests_in_flight 0$/m);
      },
      { timeout: 30_000, interval: 50 },
    );
    expect(written).toBeLessThan(64 * 1024 * 1024);
    expect(memoryMb(tollgate.pid) - before).toBeLessThan(64);
  });

  test('behaviour: an upstream that does not answer is 504, one that stops in its answer cuts the client off', async () => {
    await none();
    const [never, half] = await Promise.all([openClient(tollgate), openClient(tollgate)]);
    never.send('GET /never HTTP/1.1\r\nHost: h\r\n\r\n');
    half.send('GET /half HTTP/1.1\r\nHost: h\r\n\r\n');
    const answer = await never.answer();
    expect([answer.status, codeOf(answer)]).toEqual([504, 'upstream_timeout']);
    await half.until('half');
    await half.closed;
    expect(half.received()).not.toContain('upstream_timeout');
  });
});

describe('limits of those who pay and of those who do not', () => {
  let tollgate: TollgateProcess;
  const called: Socket[] = [];
  const asked: Socket[] = [];
  // Takes calls and answers none: a payment stays where it is. What a start asks of it is no payment.
  const stalled = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (bytes) => (bytes.toString('latin1').startsWith('POST ') ? called : asked).push(socket));
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => stalled.listen(0, '127.0.0.1', resolve));
    const address = stalled.address();
    const port = typeof address === 'object' ? address?.port : 0;
    tollgate = await start(
      'clients',
      'trusted_proxies: [127.0.0.1], limits: { payments: 3, payments_per_client: 2, challenges_per_client: { per_minute: 1, burst: 4 } }, timeouts: { drain_delay: 0s }',
      `{ url: "http://127.0.0.1:${port}", timeouts: { verify: 10s }, limits: { calls: 3, waiting: 0 } }`,
    );
  });
  afterAll(async () => {
    await tollgate?.kill();
    for (const socket of [...called, ...asked]) socket.destroy();
    stalled.close();
  });
  const ask = async (target: string, from: string, payment?: string): Promise<RawAnswer> => {
    const client = await openClient(tollgate);
    const paying = payment === undefined ? '' : `PAYMENT-SIGNATURE: ${payment}\r\n`;
    client.send(`GET ${target} HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: ${from}\r\n${paying}Connection: close\r\n\r\n`);
    return client.answer();
  };

  test('refuses: one 402 more than one client may draw; others, free requests and payments go on', async () => {
    const answers = [];
    for (let i = 0; i < 6; i++) answers.push(await ask(`/paid/${i}`, '198.51.100.1'));
    expect(answers.map(({ status }) => status)).toEqual([402, 402, 402, 402, 429, 429]);
    const [refused] = answers.slice(4);
    if (refused === undefined) throw new Error('no answer');
    expect(codeOf(refused)).toBe('too_many_challenges');
    expect(Number(headerOf(refused, 'retry-after'))).toBeGreaterThan(50);
    expect(headerOf(refused, 'content-type')).toBe('application/problem+json');
    expect((await ask('/free', '198.51.100.1')).status).toBe(200);
    expect((await ask('/paid/a', '198.51.100.2')).status).toBe(402);
    // A subscriber's whole network is one client.
    const network = [1, 2, 3, 4, 5].map((host) => ask('/paid/a', `2001:db8:0:1::${host}`));
    expect((await Promise.all(network)).filter(({ status }) => status === 429).length).toBe(1);
    expect((await ask('/paid/a', '2001:db8:0:2::1')).status).toBe(402);
    // Who presents a payment is not asked about challenges.
    const malformed = await ask('/paid/a', '198.51.100.1', 'eA==');
    expect([malformed.status, codeOf(malformed)]).toEqual([400, 'payment_malformed']);
  });

  test('refuses: one payment more at a time, of one client and of all, while the facilitator stalls', async () => {
    const terms = readTerms(headerOf(await ask('/paid/a', '198.51.100.9'), 'payment-required') ?? '');
    const pay = (from: string): Promise<RawAnswer> => ask('/paid/a', from, makeUpPayment(terms, Date.now()));
    const waiting = [pay('198.51.100.3'), pay('198.51.100.3')];
    await vi.waitFor(() => expect(called.length).toBe(2), { timeout: 60_000 });
    const own = await pay('198.51.100.3');
    expect([own.status, codeOf(own), headerOf(own, 'retry-after')]).toEqual([429, 'too_many_payments', '1']);
    waiting.push(pay('198.51.100.4'));
    await vi.waitFor(() => expect(called.length).toBe(3), { timeout: 60_000 });
    const any = await pay('198.51.100.5');
    expect([any.status, codeOf(any), headerOf(any, 'retry-after')]).toEqual([503, 'too_many_requests_in_flight', '1']);
    expect((await ask('/free', '198.51.100.3')).status).toBe(200);
    for (const socket of called) socket.destroy();
    for (const answer of await Promise.all(waiting))
      expect([answer.status, codeOf(answer)]).toEqual([503, 'facilitator_unavailable']);
    // Their places are free again: the next one gets as far as the facilitator.
    const next = pay('198.51.100.3');
    await vi.waitFor(() => expect(called.length).toBe(4), { timeout: 60_000 });
    called.at(-1)?.destroy();
    expect((await next).status).toBe(503);
  });
});

describe('10,000 idle connections', () => {
  test('behaviour: 10,000 idle connections are held in little memory while others are answered', async () => {
    const perProcess = Number(execFileSync('sh', ['-c', 'ulimit -n']).toString().trim()) || 20_000;
    const wanted = Math.min(10_000, perProcess - 500);
    const tollgate = await start('idle', 'timeouts: { drain_delay: 0s }');
    const node = path.join(ROOT, 'node_modules/.bin/node');
    const script = path.join(ROOT, 'test/support/idle-clients.ts');
    const medianMs = async (): Promise<number> => {
      const took: number[] = [];
      for (let i = 0; i < 20; i++) {
        const since = performance.now();
        expect((await fetch(`${tollgate.url('proxy')}/free`)).status).toBe(200);
        took.push(performance.now() - since);
      }
      return took.toSorted((a, b) => a - b)[10] ?? Infinity;
    };
    // On a busy machine it takes longer anyway.
    const alone = await medianMs();
    const before = memoryMb(tollgate.pid);
    const child = spawn(node, [script, String(tollgate.port('proxy')), String(wanted), '/paid/a'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    try {
      let said = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
      await vi.waitFor(() => expect(said).toBe(`open ${wanted}\n`), { timeout: 150_000, interval: 20 });
      expect(await medianMs()).toBeLessThan(250 + 3 * alone);
      expect(memoryMb(tollgate.pid) - before).toBeLessThan(400);
      child.stdin.write('?');
      await vi.waitFor(() => expect(said).toBe(`open ${wanted}\nopen ${wanted}\n`), { timeout: 60_000 });
      // All at once go when it is asked to stop: idle connections hold nothing up.
      const since = performance.now();
      tollgate.signal('SIGTERM');
      expect(await tollgate.exited).toBe(0);
      expect(performance.now() - since).toBeLessThan(20_000);
    } finally {
      child.kill('SIGKILL');
      await tollgate.kill();
    }
  }, 300_000);
});

function memoryMb(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
}
