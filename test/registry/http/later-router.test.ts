// The endpoints of a registry are loaded at its first request; a start loads none of them.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../../src/host/log.ts';
import { createLaterRouter } from '../../../src/registry/http/later-router.ts';

const SRC = path.resolve(import.meta.dirname, '../../../src');

test('behaviour: a request for which the endpoints cannot be loaded is 503, the log says why, and the next one loads them', async () => {
  const lines: string[] = [];
  const observed: unknown[] = [];
  let loads = 0;
  const route = createLaterRouter({
    log: createLog('info', (line) => void lines.push(line), Date.now),
    observer: {
      request: (endpoint, code) => void observed.push([endpoint, code]),
      signInRefused: () => undefined,
      deskSignIn: () => undefined,
    },
    load: async () => {
      if (++loads === 1) throw new Error('EMFILE: too many open files');
      return (req, res) => void req.pipe(res);
    },
  });
  const server = createServer(route).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/openapi.json`;
  const post = (body: string): Promise<Response> => fetch(url, { method: 'POST', body });

  const refused = await post('one');
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toBe('5');
  expect(refused.headers.get('cache-control')).toBe('no-store');
  expect(await refused.json()).toMatchObject({
    code: 'registry_unavailable',
    detail: 'This registry could not load its endpoints; its log says why.',
  });
  expect(lines.join()).toContain('EMFILE');
  expect(observed).toEqual([['none', 503]]);

  const answered = await Promise.all([post('two'), post('three')]);
  expect(await Promise.all(answered.map((response) => response.text()))).toEqual(['two', 'three']);
  expect(await (await post('four')).text()).toBe('four');
  expect(loads).toBe(2);
});

test('behaviour: a start loads no endpoint of the registry, no schema of one and nothing that describes them', () => {
  const reached = reachedFrom(path.join(SRC, 'compose.ts'));
  expect(reached.size).toBeGreaterThan(100);
  expect(reached).toContain('registry/registry.ts');
  const late =
    /^registry\/(?:api\.ts|http\/(?:openapi-document|\w*-?examples|router|schemas)\.ts|.*-(?:endpoints?|schemas)\.ts)$/;
  expect([...reached].filter((file) => late.test(file))).toEqual([]);
});

/** Files that are loaded with `start`: those that it and they import by name, other than types. */
function reachedFrom(start: string): ReadonlySet<string> {
  const reached = new Set<string>();
  const waiting = [start];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const name = path.relative(SRC, file);
    if (reached.has(name)) continue;
    reached.add(name);
    const text = readFileSync(file, 'utf8');
    for (const [, specifier = ''] of text.matchAll(/^(?:import|export) (?!type )[^;]*?from '(\.[^']+)';/gm))
      waiting.push(path.resolve(path.dirname(file), specifier));
  }
  return reached;
}
