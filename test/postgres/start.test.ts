// A start waits for the database, also for one that goes away again in the middle of it.
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { startGate } from '../chaos/gate.ts';
import { startProcess, temporaryFolder } from '../support/process.ts';
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
  ] as const)('behaviour: a connection that ends %s is had again', async (_when, word, at) => {
    const { port, pathname } = new URL(await freshDatabase());
    const gate = await startGate(() => [Number(port)]);
    closing.push(gate.close);
    gate.cutAt(word, at);
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
});
