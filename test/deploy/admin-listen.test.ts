// TOLLGATE_ADMIN_LISTEN, by which the image puts the admin listener where probes and Prometheus reach it: it fills a gap,
// it overrules nobody, and a container without a file can still be asked for its health.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { readArgs } from '../../src/cli/args.ts';
import { healthcheck } from '../../src/cli/healthcheck.ts';
import { fillAdminListen } from '../../src/config/admin-listen.ts';
import { fakeIo } from '../cli/support.ts';
import { configOf, problemsOf } from '../config/support.ts';

const ENV = { TOLLGATE_ADMIN_LISTEN: '0.0.0.0:9999' };

describe('the configuration', () => {
  test.each([
    ['without admin', 'registry: {}'],
    ['with an empty admin', 'registry: {}\nadmin:'],
    ['with an admin that says nothing of it', 'registry: {}\nadmin: {}'],
  ])('behaviour: a configuration %s listens where the variable says', (_name, text) => {
    expect(configOf(text, ENV).admin.listen).toEqual({ host: '0.0.0.0', port: 9999 });
    expect(configOf(text).admin.listen).toEqual({ host: '127.0.0.1', port: 9402 });
    expect(configOf(text, { TOLLGATE_ADMIN_LISTEN: '' }).admin.listen).toEqual({ host: '127.0.0.1', port: 9402 });
  });

  test('behaviour: a file’s admin.listen is not overruled by the variable', () => {
    const text = 'registry: {}\nadmin: { listen: "127.0.0.1:1234" }';
    expect(configOf(text, ENV).admin.listen).toEqual({ host: '127.0.0.1', port: 1234 });
  });

  test('refuses: a variable that is no address, without repeating it', () => {
    const problems = problemsOf('registry: {}', { TOLLGATE_ADMIN_LISTEN: 'nonsense' });
    expect(problems).toEqual([
      expect.stringMatching(
        /^1:1 admin\.listen: is not written, and the environment variable TOLLGATE_ADMIN_LISTEN is not an address/,
      ),
    ]);
    expect(problems.join()).not.toContain('nonsense');
  });

  test('refuses: an address that another listener has', () => {
    expect(problemsOf('registry: { listen: "127.0.0.1:9999" }', ENV)).toEqual([
      expect.stringContaining('takes the address of'),
    ]);
  });

  test.each([undefined, null, 'text', [], { admin: 'text' }, { admin: [] }])(
    'behaviour: data that is no configuration is left alone: %j',
    (data) => {
      const before = JSON.stringify(data);
      expect(fillAdminListen(data, ENV)).toEqual([]);
      expect(JSON.stringify(data)).toBe(before);
    },
  );
});

describe('tollgate healthcheck', () => {
  const ask = async (env: Record<string, string>): Promise<{ code: number; stderr: string }> => {
    const args = readArgs([], healthcheck.flags, healthcheck.words);
    if (!args.ok) throw new Error(args.problems.join());
    const io = fakeIo({ env });
    return { code: await healthcheck.run(args.args, io), stderr: io.stderr() };
  };

  test('behaviour: without any file healthcheck asks where the variable says', async () => {
    const asked: (string | undefined)[] = [];
    const server = createServer((req, res) => {
      asked.push(req.url);
      res.writeHead(asked.length === 1 ? 200 : 503).end();
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    const env = { TOLLGATE_CONFIG: '/nowhere/tollgate.yaml', TOLLGATE_ADMIN_LISTEN: `0.0.0.0:${port}` };
    try {
      expect(await ask(env)).toEqual({ code: 0, stderr: '' });
      expect((await ask(env)).code).toBe(1);
      expect(asked).toEqual(['/readyz', '/readyz']);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });

  test('refuses: a healthcheck without a file and without the variable: there is nothing to ask', async () => {
    expect((await ask({ TOLLGATE_CONFIG: '/nowhere/tollgate.yaml' })).code).toBe(64);
    expect((await ask({})).code).toBe(64);
  });
});
