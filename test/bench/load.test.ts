// What the bench's load is made of: requests as they go over the wire, answers as they are counted, and when a count says
// that something was lost or made twice.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { countFault } from '../../bench/check.ts';
import type { ClosedJob } from '../../bench/closed.ts';
import { PASS_PLAN, PASS_SECRET } from '../../bench/pass-tokens.ts';
import { readRows } from '../../bench/paying.ts';
import { isInstalled } from '../../bench/process.ts';
import { linesOf } from '../../bench/question.ts';
import { POST_BODY } from '../../bench/upstream-answers.ts';
import { readStatus, type Reader } from '../../bench/wire.ts';
import { faultsOf, runWrk } from '../../bench/wrk.ts';
import { createPassTokens, markOfPlan } from '../../src/domain/selling/pass-token.ts';

describe('the count of the upstream', () => {
  test.each([
    [1000, true],
    [1064, true],
    [999, false],
    [1065, false],
  ])('behaviour: the upstream’s count of %d requests fits 1,000 answers and 64 under way: %s', (reached, holds) => {
    expect(countFault(reached, { answers: 1000, underWay: 64 }) === undefined).toBe(holds);
  });

  test('refuses: a single request at the upstream if none may be forwarded', () => {
    expect(countFault(0, undefined)).toBeUndefined();
    expect(countFault(1, undefined)).toContain('none may');
  });
});

test('behaviour: a load with more passes than paths presents each of them in turn, all good, and no two alike', () => {
  const lines = linesOf({ passes: 5 }, ['/a', '/b']);
  expect(lines.map(({ path }) => path)).toEqual(['/a', '/b', '/a', '/b', '/a']);
  const tokens = lines.map(({ headers }) => headers['Tollgate-Pass'] ?? '');
  expect(new Set(tokens).size).toBe(5);
  const { read } = createPassTokens([PASS_SECRET]);
  expect(tokens.map((token) => read(token)?.planMark)).toEqual(tokens.map(() => markOfPlan(PASS_PLAN)));
  expect(linesOf('request', ['/a', '/b'])).toEqual([
    { path: '/a', headers: {} },
    { path: '/b', headers: {} },
  ]);
});

describe('what wrk is told and what it says', () => {
  test.each([
    [{ requests: 10, us: 1, bytes: 100, status: 0, broken: 0 }, 200, 0],
    [{ requests: 10, us: 1, bytes: 99, status: 0, broken: 0 }, 200, 1],
    [{ requests: 10, us: 1, bytes: 100, status: 1, broken: 0 }, 200, 1],
    [{ requests: 10, us: 1, bytes: 100, status: 0, broken: 1 }, 200, 1],
    [{ requests: 10, us: 1, bytes: 100, status: 10, broken: 0 }, 402, 0],
    [{ requests: 10, us: 1, bytes: 100, status: 9, broken: 0 }, 402, 1],
    [{ requests: 0, us: 1, bytes: 0, status: 0, broken: 0 }, 200, 1],
  ])('behaviour: the summary of wrk %j with %d expected has %d faults', (summary, status, count) => {
    expect(faultsOf(summary, { status, bytes: 10 })).toHaveLength(count);
  });

  test.skipIf(!isInstalled('wrk'))(
    'behaviour: wrk sends paths in turn, whole bodies, and new paths each time',
    async () => {
      const [posts, fresh] = await Promise.all([
        seenFromWrk({ method: 'POST', body: 'small', paths: ['/a', '/b "quoted"', '/c]]'] }),
        seenFromWrk({ method: 'GET', body: 'none', paths: { prefix: '/new/' } }),
      ]);
      // wrk makes one for itself before it starts.
      const turn = ['/b "quoted"', '/c]]', '/a', '/b "quoted"'];
      expect(posts.slice(0, 4)).toEqual(turn.map((target) => `POST ${target} ${POST_BODY}`));
      expect(fresh.length).toBeGreaterThan(10);
      expect(fresh.filter((request) => !request.startsWith('GET /new/'))).toEqual([]);
      expect(new Set(fresh).size).toBe(fresh.length);
    },
  );
});

describe('answers read off a socket', () => {
  const ANSWER = 'HTTP/1.1 402 Payment Required\r\nContent-Length: 5\r\n\r\nhello';

  test('behaviour: an answer counts once it is whole, wherever it was cut', () => {
    for (let cut = 1; cut < ANSWER.length; cut++) {
      const reader: Reader = { pending: undefined };
      expect(readStatus(reader, Buffer.from(ANSWER.slice(0, cut)))).toBeUndefined();
      expect(readStatus(reader, Buffer.from(ANSWER.slice(cut)))).toBe(402);
      expect(reader.pending).toBeUndefined();
    }
  });

  test('refuses: bytes beyond an answer read off a socket, and an answer without a length', () => {
    expect(() => readStatus({ pending: undefined }, Buffer.from(`${ANSWER}!`))).toThrow('1 bytes too many');
    expect(() => readStatus({ pending: undefined }, Buffer.from('HTTP/1.1 200 OK\r\n\r\n'))).toThrow(
      'without a length',
    );
  });
});

test('behaviour: lines that bench/paid.ts prints are read by name: CPU, and what that is a second and core', () => {
  const rows = readRows(
    '| request | CPU us, all threads (min-max) | main |\n|---|---:|---:|\n| paid GET, settled before the response | 500 (480-520) | 1 |\n| 402 | 25 | 1 |\n\n4 payments',
  );
  expect(rows.get('paid GET, settled before the response')).toEqual({ cpuUs: 500, perCore: 2000 });
  expect(rows.get('402')).toEqual({ cpuUs: 25, perCore: 40_000 });
  expect(rows.size).toBe(2);
});

test('behaviour: a constant answer in the tables of bench/paid.ts is what the others are told in', () => {
  const rows = readRows(
    '| paid GET, settled before the response | 500 (480-520) |\n| node:http, constant | 25.0 (20-30) |',
  );
  expect(rows.get('paid GET, settled before the response')).toEqual({ cpuUs: 500, perCore: 2000, constants: 20 });
  expect(rows.get('node:http, constant')).toMatchObject({ cpuUs: 25, constants: 1 });
});

/** What a server that reads requests by hand got from a second of wrk. */
async function seenFromWrk(load: Pick<ClosedJob, 'method' | 'body' | 'paths'>): Promise<string[]> {
  const seen: string[] = [];
  const server = createServer((socket) => {
    let text = '';
    socket.on('error', () => socket.destroy());
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      const end = text.indexOf('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (end < 0 || text.length < end + 4 + length) return;
      const [, method = '', target = ''] = /^(\S+) (.*) HTTP/.exec(text) ?? [];
      seen.push(`${method} ${target} ${text.slice(end + 4)}`.trim());
      text = '';
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-wrk-'));
  try {
    const job: ClosedJob = {
      ...load,
      port,
      connections: 1,
      seconds: 1,
      expect: { status: 200, bytes: 2 },
      pid: process.pid,
    };
    const { requests, faults } = await runWrk(job, folder);
    expect(faults).toEqual([]);
    expect(seen.length - requests).toBeLessThanOrEqual(1);
    return seen;
  } finally {
    rmSync(folder, { recursive: true });
    server.close();
  }
}
