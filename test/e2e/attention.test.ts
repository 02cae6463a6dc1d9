// What needs somebody, made to happen to a real process: its facilitator turns it away, fails and lists nothing, its file is
// changed for the worse, its routes are changed beside the file, its store is taken away. Each is told by the registry, by
// /readyz?verbose, and no more once it is over.
import { renameSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { tollgate } from '../cli/support.ts';
import { startProcess, temporaryFolder } from '../support/process.ts';

const files = temporaryFolder();
afterAll(files.remove);

type Entry = { code: string; severity: string; subject: string | null; detail: string; link: string | null };
const NETWORK = 'eip155:84532';
const KINDS = { kinds: [{ x402Version: 2, scheme: 'exact', network: NETWORK }] };
const WAITS = { timeout: 30_000, interval: 100 };

test('behaviour: what happens to a process needs somebody until it is over, in the desk and in readiness', async () => {
  let answer: { status: number; body: unknown } = { status: 200, body: KINDS };
  const facilitator = createServer((_req, res) => {
    res.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
  });
  await new Promise<void>((resolve) => facilitator.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void facilitator.close());
  const host = `127.0.0.1:${(facilitator.address() as AddressInfo).port}`;
  const config = (rest = '', amount = '0.10'): string => `
proxy: { listen: 127.0.0.1:0, upstream: "http://127.0.0.1:1", public_url: "https://api.example.com" }
registry: { listen: 127.0.0.1:0, store: "sqlite:data/attention.db" }
admin: { listen: 127.0.0.1:0 }
${rest}
receivers:
  - { id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x1111111111111111111111111111111111111111", facilitators: ["http://${host}"] }
routes:
  - { route_pattern: "/reports/*", method: GET, amount: "${amount}" }
`;
  const file = files.write('attention.yaml', config());
  const server = await startProcess({ args: ['serve', '-c', file], listeners: ['proxy', 'registry', 'admin'] });
  onTestFinished(() => server.kill());
  const token = (await tollgate(['token', '-c', file], { folder: files.folder })).stdout.trim();
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const ask = async (): Promise<Entry[]> => {
    const reply = await fetch(`${server.url('registry')}/v1/billing/attention`, { headers });
    const body = (await reply.json()) as { data: Entry[] };
    expect(reply.status).toBe(200);
    return body.data;
  };
  const told = async (): Promise<string> =>
    (await ask()).map(({ code, subject }) => `${code} ${subject ?? ''}`.trim()).join(', ');
  const ready = async (): Promise<string> => {
    const reply = await fetch(`${server.url('admin')}/readyz?verbose`);
    const { checks } = (await reply.json()) as { checks: { name: string; detail: string }[] };
    return checks.find(({ name }) => name === 'attention')?.detail ?? '';
  };
  /** A reload asks the services anew. */
  const reloaded = async (text: string): Promise<void> => {
    const mark = server.lines.length;
    files.write('attention.yaml', text);
    server.signal('SIGHUP');
    await expect
      .poll(
        () =>
          server.lines
            .slice(mark)
            .some(({ msg }) => /^(configuration reloaded|the configuration was not reloaded)$/.test(msg)),
        WAITS,
      )
      .toBe(true);
  };
  await expect.poll(told, WAITS).toBe('');
  expect(await ready()).toBe('nothing needs somebody');

  answer = { status: 401, body: {} };
  await reloaded(config('log: { level: debug }'));
  await expect.poll(told, WAITS).toBe(`facilitator_unauthorized ${host}`);
  expect(await ask()).toMatchObject([{ link: '/desk/receivers', severity: 'ticket' }]);
  expect(await ready()).toContain(host);
  answer = { status: 500, body: {} };
  await reloaded(config());
  await expect.poll(told, WAITS).toBe(`facilitator_failing ${host}`);
  answer = { status: 200, body: { kinds: [] } };
  await reloaded(config('log: { level: debug }'));
  await expect.poll(told, WAITS).toBe('receiver_unpayable default');
  answer = { status: 200, body: KINDS };
  await reloaded(config());
  await expect.poll(told, WAITS).toBe('');

  await reloaded(config('proxi: {}'));
  await expect.poll(told, WAITS).toBe('config_refused');
  expect((await ask())[0]?.detail).toContain('proxi');
  await reloaded(config());
  await expect.poll(told, WAITS).toBe('');

  const list = (await (await fetch(`${server.url('registry')}/v1/billing/protected-routes`, { headers })).json()) as {
    data: { id: string }[];
  };
  const route = `${server.url('registry')}/v1/billing/protected-routes/${list.data[0]?.id}`;
  const patch = async (amount: string): Promise<void> => {
    const reply = await fetch(route, { method: 'PATCH', headers, body: JSON.stringify({ amount }) });
    expect(reply.status).toBe(200);
  };
  await patch('0.20');
  await expect.poll(told, WAITS).toBe('config_differs routes');
  await patch('0.10');
  await expect.poll(told, WAITS).toBe('');

  const [store, away] = ['attention.db', 'away.db'].map((name) => path.join(files.folder, 'data', name)) as [
    string,
    string,
  ];
  renameSync(store, away);
  await expect.poll(told, WAITS).toBe('ledger_unavailable');
  renameSync(away, store);
  await expect.poll(told, WAITS).toBe('');
  // What was raised and cleared stands in the log, once each.
  const said = server.lines.filter(({ msg }) => msg === 'needs attention').map((line) => line['code']);
  expect(said).toEqual([...new Set(said)]);
});
