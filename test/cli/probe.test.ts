// The probe against upstreams of every temperament: what it finds out has to be what their handlers do, and what it
// cannot find out has to count against a profile.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { PROFILE_NAMES } from '../../src/domain/routing/profile.ts';
import { CERTIFICATE, KEY } from '../support/certificate.ts';
import {
  heldIn,
  namesOf,
  neededBy,
  notFound,
  PATH,
  probeJson,
  reachedIn,
  reading,
  runProbe,
  serve,
  startProbed,
} from './probe-support.ts';
import { tollgate } from './support.ts';

const decode = (path: string): string => {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
};
const perSegment = (path: string, change: (segment: string) => string): string => path.split('/').map(change).join('/');

/** What an upstream does with a path, the folding that it therefore needs, and a profile that is not safe for it. */
const TEMPERAMENTS: readonly {
  readonly name: string;
  readonly read: (path: string) => string;
  readonly needs: readonly string[];
  readonly reaches: string;
  readonly safe: string;
  readonly unsafe?: string;
}[] = [
  { name: 'compares strings', read: (path) => path, needs: [], reaches: '/v1/export?x=1', safe: 'fastify' },
  {
    name: 'ignores letter case',
    read: (path) => path.toLowerCase(),
    needs: ['letterCase'],
    reaches: '/V1/EXPORT',
    safe: 'express',
    unsafe: 'fastify',
  },
  {
    name: 'merges slashes',
    read: (path) => path.replace(/\/+/g, '/'),
    needs: [],
    reaches: '//v1/export',
    safe: 'nginx',
  },
  {
    name: 'drops a slash at the end',
    read: (path) => path.replace(/\/$/, ''),
    needs: [],
    reaches: '/v1/export/',
    safe: 'h3',
  },
  { name: 'decodes once', read: decode, needs: [], reaches: '/v1%2Fexport', safe: 'django' },
  { name: 'decodes twice', read: (path) => decode(decode(path)), needs: [], reaches: '/v1/%2565xport', safe: 'php' },
  {
    // A decoded # or ? ends the path for a URL parser, and spaces at the end are cut.
    name: 'parses a URL after decoding',
    read: (path) => new URL(decode(path).replaceAll('%', ''), 'http://x').pathname,
    needs: ['matrix', 'trim'],
    reaches: '/x/..%2Fv1/export',
    safe: 'unknown',
    unsafe: 'sinatra',
  },
  {
    name: 'takes dots for slashes',
    read: (path) => path.replace(/\./g, '/'),
    needs: ['dots'],
    reaches: '/v1.export',
    safe: 'unknown',
    unsafe: 'express',
  },
  {
    name: 'answers the index of a folder',
    read: (path) => path.replace(/\/index$/, ''),
    needs: ['index'],
    reaches: '/v1/export/index',
    safe: 'unknown',
    unsafe: 'rails',
  },
  {
    name: 'answers with the data of a page',
    read: (path) => path.replace(/\/__data\.json$/, ''),
    needs: ['pageData'],
    reaches: '/v1/export/__data.json',
    safe: 'next',
    unsafe: 'rails',
  },
  {
    name: 'names views with @@',
    read: (path) => path.replace('/@@', '/'),
    needs: ['views'],
    reaches: '/v1/@@export',
    safe: 'unknown',
    unsafe: 'fastapi',
  },
  {
    name: 'takes backslashes for slashes',
    read: (path) => decode(path).replaceAll('\\', '/'),
    needs: [],
    reaches: '/v1\\export',
    safe: 'fastify',
  },
  {
    name: 'strips the parameters of each segment',
    read: (path) => perSegment(path, (segment) => segment.replace(/;.*/, '')),
    needs: ['matrix'],
    reaches: '/v1;x=1/export',
    safe: 'spring',
    unsafe: 'aspnet',
  },
  {
    name: 'ends the path at a semicolon',
    read: (path) => path.replace(/;.*/, ''),
    needs: ['matrix'],
    reaches: '/v1/export;.css',
    safe: 'spring',
    unsafe: 'rails',
  },
  {
    name: 'takes a format off',
    read: (path) => path.replace(/\.[^./]+$/, ''),
    needs: ['suffix'],
    reaches: '/v1/export.json',
    safe: 'rails',
    unsafe: 'express',
  },
  {
    name: 'trims dots and spaces',
    read: (path) => perSegment(decode(path), (segment) => segment.replace(/[. ]+$/, '')),
    needs: ['trim'],
    reaches: '/v1/export%20',
    safe: 'caddy',
    unsafe: 'spring',
  },
  {
    name: 'trims and ignores case',
    read: (path) =>
      decode(path)
        .toLowerCase()
        .replace(/[. ]+$/, ''),
    needs: ['letterCase', 'trim'],
    reaches: '/v1/export.',
    safe: 'caddy',
    unsafe: 'express',
  },
  {
    name: 'normalizes letters',
    read: (path) => decode(path).normalize('NFKC'),
    needs: ['compatibility'],
    reaches: '/v1/%EF%BD%85xport',
    safe: 'spring',
    unsafe: 'caddy',
  },
  {
    name: 'does all of it',
    read: (path) =>
      perSegment(decode(path).normalize('NFKC').toLowerCase(), (segment) =>
        segment.replace(/;.*/, '').replace(/[. ]+$/, ''),
      )
        .replace(/\/+/g, '/')
        .replace(/(?<=.)\/$/, '')
        .replace(/\.[^./]+$/, ''),
    needs: ['letterCase', 'compatibility', 'matrix', 'suffix', 'trim'],
    reaches: '/v1/export;x=1',
    safe: 'unknown',
    unsafe: 'spring',
  },
];

describe('an upstream that', () => {
  test.each(TEMPERAMENTS)('behaviour: an API that $name is told', async ({ read, needs, reaches, safe, unsafe }) => {
    const { url } = await startProbed(reading(read));
    const { code, report } = await probeJson(url);
    expect(code).toBe(0);
    expect(neededBy(report)).toEqual(needs);
    expect(reachedIn(report)).toContain(reaches);
    expect(heldIn(report)).toContain(safe);
    expect(namesOf(report.safe)).toContain('unknown');
    if (unsafe !== undefined) expect(namesOf(report.unsafe)).toContain(unsafe);
    // The probe's word against the handler's: exactly what the upstream reads as the path was reached.
    const canaries = report.paths[0]?.canaries ?? [];
    expect(canaries.length).toBeGreaterThanOrEqual(60);
    // Node's server refuses a target that does not start with a slash before any handler sees it.
    const real = canaries
      .filter(({ target }) => /^\/|:/.test(target) && read(target.split('?')[0] ?? '') === PATH)
      .map(({ target }) => target);
    expect(reachedIn(report)).toEqual(real);
    const free = canaries.filter(({ target, tollgate }) => real.includes(target) && tollgate === 'forwards');
    expect(free).toEqual([]);
  });

  test('behaviour: an upstream that compares strings may be told by any profile, the plainest first', async () => {
    const { url } = await startProbed(reading((path) => path));
    const { report } = await probeJson(url);
    expect(heldIn(report).toSorted()).toEqual(PROFILE_NAMES.toSorted());
    expect(report.safe[0]).toMatchObject({ profile: 'fastify', folds: ['empty'] });
    expect(namesOf(report.safe).at(-1)).toBe('unknown');
    expect(report.unproven[0]).toMatchObject({ profile: 'hono', folds: [] });
    expect(report.recommended).toMatchObject({
      upstream_profile: 'fastify',
      encoded_slashes_keep_is_safe: true,
      double_slashes_keep_is_safe: true,
    });
  });

  test('behaviour: an upstream that names itself is believed if its profile is safe, and only then', async () => {
    const handle = reading((path) => path.toLowerCase());
    const named = async (header: string, value: string): Promise<string> => {
      const { url } = await startProbed((req, res) => {
        res.setHeader(header, value);
        handle(req, res);
      });
      return (await probeJson(url)).report.recommended.upstream_profile;
    };
    expect(await named('x-powered-by', 'Express')).toBe('express');
    expect(await named('server', 'Kestrel')).toBe('aspnet');
    expect(await named('server', 'Werkzeug/3.1 Python/3.13')).not.toBe('flask');
    expect(await named('server', 'Caddy')).not.toBe('caddy');
  });

  test('behaviour: the data of a page is asked under the build that the page names', async () => {
    const page = (build: string): string =>
      `<html><script src="/_next/static/${build}/_buildManifest.js" defer></script><p>rows</p></html>`;
    const { url } = await startProbed((req, res) => {
      res.setHeader('content-type', 'text/html');
      if ([PATH, `/_next/data/kX-9_w${PATH}.json`].includes(req.url ?? '')) res.end(page('kX-9_w'));
      else notFound(req, res);
    });
    const { report } = await probeJson(url);
    expect(reachedIn(report)).toEqual([`/_next/data/kX-9_w${PATH}.json`]);
    expect(neededBy(report)).toEqual(['pageData']);
    expect(heldIn(report)).toContain('next');
    expect(namesOf(report.unsafe)).toContain('express');
  });

  test('behaviour: an upstream that reads a plus sign as a space is told by a path with a space', async () => {
    const path = '/v1/my%20report';
    const { url } = await startProbed((req, res) => {
      if (req.url?.replaceAll('+', '%20') === path) serve(res);
      else notFound(req, res);
    });
    const { report } = await probeJson(url, '--path', path);
    expect(reachedIn(report)).toEqual(['/v1/my+report']);
    expect(neededBy(report)).toEqual(['form']);
  });

  test('behaviour: an upstream that runs the script that a path without its suffix names, whatever follows it, is told', async () => {
    const { url } = await startProbed(reading((path) => path.replace(/\.php(?:\/.*)?$/, '')));
    const { report } = await probeJson(url);
    expect(reachedIn(report)).toContain('/v1/export.php/x');
    expect(namesOf(report.unsafe)).toContain('rails');
    expect(heldIn(report)).toContain('php');
  });

  test('behaviour: an upstream that redirects to the one spelling is safe without folding, and said to redirect', async () => {
    const { url } = await startProbed((req, res) => {
      const path = req.url ?? '';
      if (path === PATH) return serve(res);
      if (path.toLowerCase().replace(/\/$/, '') !== PATH) return notFound(req, res);
      res.writeHead(308, { location: PATH }).end();
    });
    const { report } = await probeJson(url);
    expect(neededBy(report)).toEqual([]);
    expect(report.recommended.upstream_profile).toBe('fastify');
    expect(
      report.paths[0]?.canaries.filter(({ deed }) => deed.kind === 'redirected').map(({ target }) => target),
    ).toEqual(['/V1/EXPORT', '/v1/EXPORT', '/V1/export', '/v1/Export', '/v1/export/']);
  });
});

describe('answers that are hard to tell apart', () => {
  test('refuses: a catch-all, which is said to tell nothing', async () => {
    const { url } = await startProbed((_req, res) => serve(res));
    const { code, report } = await probeJson(url);
    expect(code).toBe(1);
    expect(report).toMatchObject({
      told: false,
      recommended: { upstream_profile: 'unknown', undeclared_methods: 'pay' },
      paths: [{ doubt: 'catch_all', canaries: [] }],
    });
    const { stdout } = await runProbe('--upstream', url, '--path', PATH);
    expect(stdout).toContain('Cannot tell: use unknown');
  });

  test('refuses: a catch-all whose bodies are drawn, or repeat what was asked', async () => {
    let n = 0;
    const drawn = await startProbed((_req, res) => res.end(`answer ${++n} of 10`));
    const echo = await startProbed((req, res) => res.end(`<p>you asked for ${decode(req.url ?? '')}</p>`));
    expect((await probeJson(drawn.url)).report.paths[0]?.doubt).toBe('catch_all');
    expect((await probeJson(echo.url)).report.paths[0]?.doubt).toBe('catch_all');
  });

  test('behaviour: a body that is never twice the same is told by its status, or by its shape', async () => {
    let n = 0;
    const byStatus = await startProbed((req, res) => {
      if ((req.url ?? '').toLowerCase() === PATH) res.end(`export ${++n}`);
      else notFound(req, res);
    });
    const byShape = await startProbed((req, res) => {
      const found = (req.url ?? '').toLowerCase() === PATH;
      res.end(JSON.stringify(found ? { rows: [`${++n}`], at: ++n } : { error: `none ${++n}` }));
    });
    for (const { url } of [byStatus, byShape]) {
      const { code, report } = await probeJson(url);
      expect(code).toBe(0);
      expect(neededBy(report)).toEqual(['letterCase']);
      expect(reachedIn(report)).toEqual(['/V1/EXPORT', '/v1/EXPORT', '/V1/export', '/v1/Export']);
    }
  });

  test('behaviour: an application that answers every unknown path with its page is told by the body', async () => {
    const { url } = await startProbed((req, res) => {
      const path = (req.url ?? '').split('?')[0] ?? '';
      if (path.replace(/\/$/, '') === PATH) serve(res);
      else res.setHeader('content-type', 'text/html').end(`<html><title>shop</title>${'-'.repeat(300)}</html>`);
    });
    const { code, report } = await probeJson(url);
    expect(code).toBe(0);
    expect(reachedIn(report)).toEqual(['/v1/export/', '/v1/export?x=1']);
  });

  test('attack: an answer like neither counts as reached', async () => {
    const { url } = await startProbed((req, res) => {
      if (req.url === PATH) serve(res);
      else if (req.url?.includes(';')) res.end('something else');
      else if (req.url === `${PATH}.json`) res.writeHead(500).end('broke over it');
      else notFound(req, res);
    });
    const { report } = await probeJson(url);
    expect(neededBy(report)).toEqual(['matrix', 'suffix']);
  });

  test.each([
    ['below it', (path: string) => path.startsWith('/v1/export/'), '/v1/export/x'],
    ['that begins like it', (path: string) => path.startsWith('/v1/export'), '/v1/exportx'],
    ['behind a dot', (path: string) => /^\/v1\/export(?:$|[./])/.test(path), '/v1/export.x/y'],
  ])('attack: a router that runs the handler for everything %s leaves no profile safe', async (_, reads, target) => {
    const { url } = await startProbed((req, res) => {
      const path = req.url ?? '';
      if (path === PATH || reads(path)) return serve(res);
      res.writeHead(404).end();
    });
    const { code, report } = await probeJson(url);
    expect([code, namesOf(report.safe)]).toEqual([1, []]);
    expect(reachedIn(report)).toContain(target);
  });

  test('attack: success that agrees in nothing but its status counts as reached', async () => {
    let n = 0;
    const { url } = await startProbed((req, res) => {
      if (req.url === PATH) return serve(res);
      // Other words each time: "a", "a b", "a b c", and no refusal.
      res.setHeader('content-type', 'text/plain').end(
        'abcdefgh'
          .slice(0, 1 + (n++ % 7))
          .split('')
          .join(' '),
      );
    });
    const { report } = await probeJson(url);
    // What stands below and beside it is answered like it too, which no profile folds.
    expect(namesOf(report.safe)).toEqual([]);
    expect(reachedIn(report)).toContain('/v1/export.json');
  });

  test('attack: no answer counts as reached', async () => {
    const { url } = await startProbed((req, res) => {
      if (req.url === PATH) serve(res);
      else if (req.url?.includes(';')) res.destroy();
      else if (req.url === `${PATH}.css`) return;
      else notFound(req, res);
    });
    // Long enough for what is answered, on a busy machine too.
    const { report } = await probeJson(url, '--timeout', '3s');
    expect(neededBy(report)).toEqual(['matrix', 'suffix']);
  });

  test('behaviour: an answer without an end is told by its head', async () => {
    const { url } = await startProbed((req, res) => {
      if (req.url !== PATH) return notFound(req, res);
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: tick\n\n');
    });
    const { code, report } = await probeJson(url, '--timeout', '3s');
    expect(code).toBe(0);
    expect(reachedIn(report)).toEqual([]);
  });

  test('refuses: an upstream that changes its mind meanwhile is not called safe', async () => {
    let n = 0;
    const { url } = await startProbed((req, res) => {
      if (++n > 30) res.writeHead(429).end();
      else if (req.url === PATH) serve(res);
      else notFound(req, res);
    });
    const { code, report } = await probeJson(url);
    expect(code).toBe(1);
    expect(report.paths[0]?.doubt).toBe('unsteady');
  });

  test.each([
    ['absent', (req, res) => notFound(req, res)],
    ['redirects', (_req, res) => res.writeHead(302, { location: '/login' }).end()],
    ['failing', (_req, res) => res.writeHead(503).end()],
  ] satisfies [string, Parameters<typeof startProbed>[0]][])('refuses: a path that is %s', async (doubt, handle) => {
    const { url } = await startProbed(handle);
    const { code, report } = await probeJson(url);
    expect(code).toBe(1);
    expect(report.paths[0]?.doubt).toBe(doubt);
    expect(report.recommended.upstream_profile).toBe('unknown');
  });
});

describe('a path that ends in a parameter', () => {
  /** `/v1/reports/NAME`, with a list above it; `fills`: whether a name may be empty. */
  const reports = (fills: boolean, list: boolean) =>
    startProbed((req, res) => {
      const path = (req.url ?? '').split('?')[0] ?? '';
      const name = /^\/v1\/reports\/([^/]*)$/.exec(path)?.[1];
      if (name !== undefined && (name !== '' || fills)) res.end(`report ${name} of ${name.length} letters`);
      else if (list && path.replace(/\/$/, '') === '/v1/reports') res.end('a list of reports');
      else notFound(req, res);
    });
  const argv = ['--path', '/v1/reports/q3'];

  test('behaviour: a path that ends in a parameter is protected as one, and proves what a literal path cannot', async () => {
    const { url } = await reports(false, false);
    const { code, report } = await probeJson(url, ...argv);
    expect(code).toBe(0);
    expect(report.paths[0]).toMatchObject({ doubt: null, protected_as: '/v1/reports/:parameter' });
    expect(report.safe[0]).toMatchObject({ profile: 'hono', folds: [] });
    expect(report.unproven).toEqual([]);
  });

  test('attack: a parameter that may be empty needs a profile that knows', async () => {
    const { url } = await reports(true, false);
    const { report } = await probeJson(url, ...argv);
    expect(neededBy(report)).toEqual(['empty']);
    expect(reachedIn(report)).toContain('/v1/reports/');
    expect(namesOf(report.unsafe)).toContain('hono');
    expect(report.recommended).toMatchObject({ upstream_profile: 'fastify', alike: ['go'] });
  });

  test('behaviour: the list above a path’s parameter is not taken for it', async () => {
    const { url } = await reports(false, true);
    const { report } = await probeJson(url, ...argv);
    expect(report.paths[0]?.canaries.find(({ target }) => target === '/v1/reports/')?.deed.kind).toBe('not_found');
    expect(report.safe[0]).toMatchObject({ profile: 'hono' });
    expect((await runProbe('--upstream', url, ...argv, '--all')).stdout).toMatch(
      /\/v1\/reports\/ +another path \(200\) +another path, free/,
    );
  });
});

describe('what is sent', () => {
  test('behaviour: the probe’s targets go out byte for byte', async () => {
    const { url, seen } = await startProbed(reading((path) => path));
    await probeJson(url);
    for (const target of ['/x/../v1/export', '/v1\\export', '/v1/export#x', '/v1/%u0065xport', `${url}/v1/export`])
      expect(seen).toContain(`GET ${target}`);
  });

  test('behaviour: the probe sends nothing that could change anything, unless it was named', async () => {
    const { url, seen } = await startProbed(reading((path) => path));
    const { report } = await probeJson(url);
    expect(new Set(seen.map((line) => line.split(' ')[0]))).toEqual(new Set(['GET', 'HEAD', 'OPTIONS']));
    expect(report.recommended.undeclared_methods).toBe('pay');
    const named = await probeJson(url, '--methods', 'post,FOO,get');
    expect(seen.filter((line) => /^(?:POST|FOO)/.test(line))).toEqual([`POST ${PATH}`]);
    expect(named.report.paths[0]?.methods).toContainEqual({ method: 'POST', status: 200, alike: true });
  });

  test('behaviour: an upstream that dispatches strictly may forward undeclared methods once that was tried', async () => {
    const { url } = await startProbed((req, res) => {
      if (req.url !== PATH) return notFound(req, res);
      if (req.method === 'GET' || req.method === 'HEAD') return serve(res);
      if (req.method === 'OPTIONS') return void res.writeHead(200, { allow: 'GET, HEAD' }).end('GET, HEAD');
      res.writeHead(405).end();
    });
    expect((await probeJson(url)).report.recommended.undeclared_methods).toBe('pay');
    expect((await probeJson(url, '--methods', 'POST,DELETE')).report.recommended.undeclared_methods).toBe('forward');
  });

  test('behaviour: a method that takes the path away is tried last', async () => {
    let gone = false;
    const { url } = await startProbed((req, res) => {
      if (req.url !== PATH || gone) return notFound(req, res);
      if (req.method === 'DELETE') gone = true;
      serve(res);
    });
    const { code, report } = await probeJson(url, '--methods', 'DELETE');
    expect(code).toBe(0);
    expect(report.recommended.undeclared_methods).toBe('pay');
  });

  test('behaviour: the probe sends headers that are named, a credential and another Host among them', async () => {
    const { url } = await startProbed((req, res) => {
      if (req.headers.authorization !== 'Bearer x' || req.headers.host !== 'api.example') res.writeHead(401).end();
      else if (req.url === PATH) serve(res);
      else notFound(req, res);
    });
    expect((await probeJson(url)).report.paths[0]?.doubt).toBe('catch_all');
    const { code } = await probeJson(url, '--header', 'Authorization: Bearer x', '--header', 'host: api.example');
    expect(code).toBe(0);
  });

  test('behaviour: a query stands behind every spelling that the probe sends', async () => {
    const { url, seen } = await startProbed((req, res) => {
      const asked = new URL(req.url ?? '', 'http://x');
      if (asked.pathname.toLowerCase() === PATH && asked.searchParams.get('format') === 'csv') serve(res);
      else notFound(req, res);
    });
    const { report } = await probeJson(url, '--path', `${PATH}?format=csv`);
    expect(neededBy(report)).toEqual(['letterCase']);
    expect(
      seen.filter((line) => line.startsWith('GET') && !line.includes('?format=csv') && !line.includes('&format=csv')),
    ).toEqual([]);
  });

  test('behaviour: several paths are judged by the worst of them', async () => {
    const { url } = await startProbed((req, res) => {
      if (req.url === '/a/strict' || req.url?.toLowerCase() === '/b/loose') serve(res);
      else notFound(req, res);
    });
    expect(neededBy((await probeJson(url, '--path', '/a/strict')).report)).toEqual([]);
    expect(neededBy((await probeJson(url, '--path', '/a/strict', '--path', '/b/loose')).report)).toEqual([
      'letterCase',
    ]);
  });

  test('behaviour: the probe takes a path of one segment, with escapes, with syntax of patterns', async () => {
    const { url } = await startProbed((req, res) => {
      if (['/export', '/caf%C3%A9', '/v1/things:batchGet', '/odata/Items(1)'].includes(req.url ?? '')) serve(res);
      else notFound(req, res);
    });
    for (const path of ['/export', '/caf%c3%a9', '/v1/things:batchGet', '/odata/Items(1)']) {
      const { code, report } = await probeJson(url, '--path', path);
      expect(code).toBe(0);
      expect(reachedIn(report)).toEqual([]);
    }
  });

  test.each([
    ['1', 1],
    ['3', 3],
  ])('behaviour: the probe asks no more than --parallel %s questions at once', async (parallel, most) => {
    // The first spellings are kept waiting until as many are there as may be; then everything is answered at once.
    const waiting: (() => void)[] = [];
    let open = false;
    const upstream = await startProbed((req, res) => {
      const answer = (): void => (req.url === PATH ? serve(res) : notFound(req, res));
      if (open || req.url === PATH || req.url?.includes('tollgate-probe')) return answer();
      waiting.push(answer);
      open = waiting.length === most;
      if (open) for (const release of waiting) release();
    });
    await probeJson(upstream.url, '--parallel', parallel);
    expect(upstream.most()).toBe(most);
  });

  test('behaviour: --body-limit is how much of an answer counts', async () => {
    const { url } = await startProbed((req, res) => res.end(`0123456789${req.url === PATH ? 'a' : 'b'}`));
    expect((await probeJson(url, '--body-limit', '10')).report.paths[0]?.doubt).toBe('catch_all');
    expect((await probeJson(url, '--body-limit', '11')).code).toBe(0);
  });
});

describe('the command', () => {
  test('behaviour: the probe says what it found, and the lines to paste', async () => {
    const handle = reading((path) => path.toLowerCase());
    const { url } = await startProbed((req, res) => {
      res.setHeader('x-powered-by', 'Express');
      handle(req, res);
    });
    const { code, stdout } = await runProbe('--upstream', url, '--path', PATH);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^GET \/v1\/export at http:\/\/127\.0\.0\.1:\d+: 200; paths that cannot exist: 404\. 1\d\d other/,
    );
    expect(stdout).toMatch(/\n {4}\/V1\/EXPORT +REACHED +asks for payment\n/);
    expect(stdout).toMatch(/\n {2}letter case +yes: \/V1\/EXPORT reaches \/v1\/export\n/);
    expect(stdout).toMatch(/\n {2}dot segments: none of \d+ reaches it\n/);
    expect(stdout).toMatch(/\nNot safe:\n {2}hono [^\n]*: free would be \/V1\/EXPORT/);
    expect(stdout).toMatch(
      /\n {2}proxy:\n {4}upstream_profile: express +#[^\n]*\n {4}undeclared_methods: pay +#[^\n]*\n/,
    );
    expect(stdout).not.toContain('/x/../v1/export');
    const all = await runProbe('--upstream', url, '--path', PATH, '--all');
    expect(all.stdout).toMatch(/\/x\/\.\.\/v1\/export +no such path \(404\) +refuses \(400\)/);
  });

  test('behaviour: probe --profile asks about one profile', async () => {
    const { url } = await startProbed(reading((path) => path.toLowerCase()));
    const express = await runProbe('--upstream', url, '--path', PATH, '--profile', 'express');
    expect(express).toMatchObject({ code: 0, stdout: expect.stringContaining('\nexpress is safe') });
    const fastify = await runProbe('--upstream', url, '--path', PATH, '--profile', 'fastify');
    expect(fastify).toMatchObject({ code: 1, stdout: expect.stringContaining('\nfastify is NOT SAFE') });
    expect((await probeJson(url, '--profile', 'fastify')).report.asked).toEqual({ profile: 'fastify', safe: false });
  });

  test('refuses: to probe an upstream that is away, with 69', async () => {
    const { code, stdout, stderr } = await runProbe('--upstream', 'http://127.0.0.1:1', '--path', PATH);
    expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
    expect(stderr).toContain('does not answer (ECONNREFUSED)');
  });

  test.each([
    [[], '--upstream: is needed'],
    [['--upstream', 'http://x/path'], '--upstream: is needed'],
    [['--upstream', 'localhost:3000'], '--upstream: the scheme is missing; write http://localhost:3000\n'],
    [['--upstream', '10.0.0.1:80/'], '--upstream: the scheme is missing; write http://10.0.0.1:80\n'],
    [['--upstream', 'ftp://x'], '--upstream: is needed'],
    [['--upstream', 'http://x'], '--path: is needed'],
    [['--upstream', 'http://x', '--path', '/'], '--path /: has no letter'],
    [['--upstream', 'http://x', '--path', '/1/2'], '--path /1/2: has no letter'],
    [['--upstream', 'http://x', '--path', 'v1'], '--path v1: the path must start with a slash'],
    [['--upstream', 'http://x', '--path', '/a/../b'], '--path /a/../b: the path holds a segment of dots'],
    [['--upstream', 'http://x', '--path', '/a%2fb'], '--path /a%2fb: the path holds an encoded slash'],
    [['--upstream', 'http://x', '--path', '/a', '--profile', 'expres'], '--profile: is none of unknown express'],
    [['--upstream', 'http://x', '--path', '/a', '--methods', 'TRACE'], '--methods: TRACE is never let through'],
    [['--upstream', 'http://x', '--path', '/a', '--methods', 'A B'], '--methods: holds what is no method'],
    [['--upstream', 'http://x', '--path', '/a', '--header', 'x'], '--header: is no header'],
    [['--upstream', 'http://x', '--path', '/a', '--header', 'Upgrade: x'], '--header: may not say'],
    [['--upstream', 'http://x', '--path', '/a', '--timeout', '5'], '--timeout: is no duration'],
    [['--upstream', 'http://x', '--path', '/a', '--timeout', '11m'], '--timeout: is no duration'],
    [['--upstream', 'http://x', '--path', '/a', '--parallel', '65'], '--parallel: is no number from 1 to 64'],
    [['--upstream', 'http://x', '--path', '/a', '--parallel', '0'], '--parallel: is no number from 1 to 64'],
    [['--upstream', 'http://x', '--path', '/a', '--body-limit', '16777217'], '--body-limit: is no number of bytes'],
    [
      ['--upstream', 'http://x', ...Array.from({ length: 21 }, () => ['--path', '/a']).flat()],
      '--path: is given more than 20',
    ],
  ])('refuses: to probe with %j', async (argv, complaint) => {
    const { code, stdout, stderr } = await runProbe(...argv);
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toContain(complaint);
  });

  test('behaviour: a probe may have 20 paths, 64 questions at once and 16 MiB of a body', async () => {
    const argv = Array.from({ length: 20 }, () => ['--path', '/a']).flat();
    const limits = ['--parallel', '64', '--body-limit', '16777216', '--timeout', '10m'];
    expect((await runProbe('--upstream', 'http://127.0.0.1:1', ...argv, ...limits)).code).toBe(69);
  });
});

describe('behaviour: as a real process', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('the report of the probe goes to standard output', async () => {
    const { url } = await startProbed(reading((path) => path));
    const { code, stdout } = await tollgate(['probe', '--upstream', url, '--path', PATH], { folder });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('\n    upstream_profile: ') });
  });

  test('an upstream whose certificate nobody trusts is away, and one that is trusted is asked', async () => {
    const seen: string[] = [];
    const server = createServer({ key: KEY, cert: CERTIFICATE }, (req, res) => {
      seen.push(`${req.method} ${req.url}`);
      notFound(req, res);
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const upstream = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const argv = ['probe', '--upstream', upstream, '--path', PATH];
    expect(await tollgate(argv, { folder })).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('SELF_SIGNED'),
    });
    expect(seen).toEqual([]);
    writeFileSync(join(folder, 'ca.pem'), CERTIFICATE);
    const trusted = await tollgate(argv, { folder, env: { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') } });
    expect(trusted).toMatchObject({ code: 1, stdout: expect.stringContaining('like a path that does not exist') });
    expect(seen).toContain(`GET ${PATH}`);
  });
});
