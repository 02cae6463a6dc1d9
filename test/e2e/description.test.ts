// An API description that takes long to read: here a pipe, which is read once the test writes into it. Nobody waits for it.
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const files = temporaryFolder();
let upstream: Upstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(async () => {
  await upstream?.close();
  files.remove();
});

const DOCUMENT = `openapi: 3.0.3
paths:
  /weather:
    get: { parameters: [{ name: days, in: query, schema: { type: integer }, example: 3 }] }
`;

async function queryShown(tollgate: TollgateProcess): Promise<unknown> {
  const response = await fetch(`${tollgate.url('proxy')}/weather`);
  await response.arrayBuffer();
  expect(response.status).toBe(402);
  const header = Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString();
  const { extensions } = JSON.parse(header) as {
    extensions?: { bazaar: { info: { input: { queryParams?: unknown } } } };
  };
  return extensions === undefined ? 'nothing' : extensions.bazaar.info.input.queryParams;
}

describe.each([1, 2])('with %d process(es) of the proxy', (workers) => {
  test('behaviour: a start does not wait for the description of the API, which is in force everywhere when it has been read', async () => {
    const pipe = path.join(files.folder, `openapi-${workers}.yaml`);
    execFileSync('mkfifo', [pipe]);
    const config = files.write(
      `tollgate-${workers}.yaml`,
      [
        `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url} }`,
        `workers: ${workers}`,
        `registry: { listen: 127.0.0.1:0, store: sqlite:data-${workers}/tollgate.db }`,
        'admin: { listen: 127.0.0.1:0 }',
        `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x${'1'.repeat(40)}", facilitators: [http://127.0.0.1:1] }]`,
        'routes: [{ method: GET, route_pattern: "/weather", amount: "0.10" }]',
        `discovery: { openapi: ${path.basename(pipe)} }`,
      ].join('\n'),
    );
    const tollgate = await startProcess({ args: ['serve', '-c', config], listeners: ['proxy', 'registry', 'admin'] });
    try {
      expect((await fetch(`${tollgate.url('proxy')}/free`)).status).toBe(200);
      // With several processes it is ready once all of them are.
      await vi.waitFor(async () => expect((await fetch(`${tollgate.url('admin')}/readyz`)).status).toBe(200), {
        timeout: 20_000,
        interval: 20,
      });
      // What is not read yet is not told.
      expect(await queryShown(tollgate)).toBe('nothing');
      expect(tollgate.lines.filter(({ msg }) => msg.includes('facilitators are told'))).toEqual([]);
      await writeFile(pipe, DOCUMENT);
      expect(await tollgate.line(({ msg }) => msg === 'the API description is in force')).toMatchObject({
        operations: 1,
      });
      expect(await tollgate.line(({ msg }) => msg.includes('facilitators are told'))).toMatchObject({ routes: 1 });
      // Each connection may meet another process.
      await vi.waitFor(
        async () => {
          const shown = await Promise.all(Array.from({ length: 8 }, () => queryShown(tollgate)));
          expect(shown).toEqual(shown.map(() => ({ days: 3 })));
        },
        { timeout: 20_000, interval: 20 },
      );
    } finally {
      await tollgate.kill();
    }
  }, 60_000);
});
