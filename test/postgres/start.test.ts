// A start waits for the database, also for one that goes away again in the middle of it.
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { startGate } from '../support/gate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { hasPostgres } from './server.ts';
import { freshDatabase, stopSharedPostgres } from './store.ts';

const SECRET = 'a-secret-of-the-test-of-at-least-32-bytes';
const files = temporaryFolder();
const closing: (() => Promise<void>)[] = [];

describe.skipIf(!hasPostgres)('a start over PostgreSQL', () => {
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });
  afterAll(async () => {
    files.remove();
    await stopSharedPostgres();
  });

  test.each([
    ['while the routes are read', 'REPEATABLE READ READ ONLY', 'asked'],
    ['while declared routes are written', 'INSERT INTO tollgate.routes', 'asked'],
  ] as const)('behaviour: a connection that ends during a start, %s, is had again', async (_when, word, at) => {
    const { port, pathname } = new URL(await freshDatabase());
    const gate = await startGate(() => [Number(port)]);
    closing.push(gate.close);
    // However long the process takes to start.
    gate.cutAt(word, at, Infinity);
    const config = files.write(
      'tollgate.yaml',
      [
        `registry: { listen: 127.0.0.1:0, store: "postgres://tollgate@127.0.0.1:${gate.port}${pathname}", jwt: { secret: ${SECRET} } }`,
        'admin: { listen: 127.0.0.1:0 }',
        'routes: [{ method: GET, route_pattern: /a, amount: "0.10" }]',
      ].join('\n'),
    );
    const registry = await startProcess({ args: ['serve', '-c', config], listeners: ['registry', 'admin'] });
    closing.push(registry.kill);
    expect(registry.lines.map(({ msg }) => msg)).toContain('the store went away during the start');
    expect(registry.lines.filter(({ msg }) => msg === 'declared route created')).toHaveLength(1);
  });

  test('behaviour: while the database is away a start has only the admin listener, which says what is waited for', async () => {
    const { port, pathname } = new URL(await freshDatabase());
    const gate = await startGate(() => [Number(port)]);
    closing.push(gate.close);
    await gate.shut();
    const tollgate = await startProcess({ args: ['serve', '-c', allInOne(gate.port, pathname)], listeners: ['admin'] });
    closing.push(tollgate.kill);
    expect(await ask(tollgate, '/livez')).toEqual([200, 'ok\n']);
    expect(await ask(tollgate, '/readyz')).toEqual([503, 'not ready: start, routes, store\n']);
    const refused = `connect ECONNREFUSED 127.0.0.1:${gate.port}`;
    await vi.waitFor(
      async () => expect((await ask(tollgate, '/readyz?verbose'))[1]).toContain(`cannot be used yet: ${refused}`),
      10_000,
    );
    expect((await ask(tollgate, '/metrics'))[1]).toMatch(/^tollgate_store_up 0$/m);
    expect(tollgate.lines.filter(({ msg }) => msg === 'listening').map(({ listener }) => listener)).toEqual(['admin']);

    await gate.open();
    await tollgate.line(({ msg, listener }) => msg === 'listening' && listener === 'proxy');
    await vi.waitFor(async () => expect(await ask(tollgate, '/readyz')).toEqual([200, 'ok\n']));
    expect((await ask(tollgate, '/metrics'))[1]).toMatch(/^tollgate_store_up 1$/m);
  });

  test('behaviour: one signal ends a start that waits', async () => {
    const waiting = await startProcess({ args: ['serve', '-c', allInOne(1, '/nothing')], listeners: ['admin'] });
    closing.push(waiting.kill);
    waiting.signal('SIGTERM');
    expect(await waiting.exited).toBe(0);
  });
});

function allInOne(port: number, pathname: string): string {
  return files.write(
    'all-in-one.yaml',
    `proxy: { listen: 127.0.0.1:0, upstream: "http://127.0.0.1:1", hosts: [localhost] }
registry:
  listen: 127.0.0.1:0
  store: { url: "postgres://tollgate@127.0.0.1:${port}${pathname}", timeout: 1s }
  jwt: { secret: ${SECRET} }
charges: { secrets: [${SECRET}] }
admin: { listen: 127.0.0.1:0 }
`,
  );
}

async function ask({ url }: TollgateProcess, path: string): Promise<[status: number, body: string]> {
  const response = await fetch(url('admin') + path);
  return [response.status, await response.text()];
}
