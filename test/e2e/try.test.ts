// Trying a request beside a real proxy: what the registry answers is what the proxy then writes, and trying leaves no trace.
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { tollgate } from '../cli/support.ts';
import { startProcess, temporaryFolder } from '../support/process.ts';

const files = temporaryFolder();
afterAll(files.remove);

const CONFIG = `
proxy: { listen: 127.0.0.1:0, upstream: "http://127.0.0.1:1", public_url: "https://api.example.com" }
registry: { listen: 127.0.0.1:0, store: "sqlite:try.db" }
admin: { listen: 127.0.0.1:0 }
receivers:
  - { id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x1111111111111111111111111111111111111111", facilitators: [http://127.0.0.1:1] }
routes:
  - { route_pattern: "/reports/*", method: GET, amount: "0.10" }
`;

test('behaviour: a tried request gets the 402 that the proxy writes, and nothing is sent, counted or kept', async () => {
  const file = files.write('try.yaml', CONFIG);
  const server = await startProcess({ args: ['serve', '-c', file], listeners: ['proxy', 'registry', 'admin'] });
  onTestFinished(() => server.kill());
  const token = (await tollgate(['token', '-c', file], { folder: files.folder })).stdout.trim();
  const tried = async (method: string, path: string): Promise<Record<string, unknown>> => {
    const url = `${server.url('registry')}/v1/billing/try?${new URLSearchParams({ method, path })}`;
    const reply = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    expect(reply.status).toBe(200);
    return (await reply.json()) as Record<string, unknown>;
  };
  type Answer = { status: number; headers: [string, string][]; body: string };
  const { answer, ...rest } = await tried('get', "/reports/q'3?x=1");
  expect(rest).toMatchObject({ target: "/reports/q'3?x=1", problem: null, matched: true, payment_required: true });
  expect(rest).toMatchObject({ because: [{ route_pattern: '/reports/*', wins: true }], reason: null });
  expect(rest['curl']).toBe(`curl -i -X GET 'https://api.example.com/reports/q'\\''3?x=1'`);
  const { status, headers, body } = answer as Answer;
  const metrics = async (): Promise<string> => (await fetch(`${server.url('admin')}/metrics`)).text();
  const counted = /_requests_total\{[^}]*payment_required[^}]*\} [1-9]/;
  expect(await metrics()).not.toMatch(counted);

  const real = await fetch(`${server.url('proxy')}/reports/q'3?x=1`);
  expect([status, real.status]).toEqual([402, 402]);
  expect(await metrics()).toMatch(counted);
  const [chargeId = ''] = /chg_[\w-]+/.exec(body) ?? [];
  const why = await fetch(`${server.url('registry')}/v1/billing/why/${chargeId}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(await why.json()).toMatchObject({ charges: [], quote: expect.any(Object) });
  // The random part of a charge id, and the moment that it ends.
  const plain = (text: string): string => text.replaceAll(/chg_[\w-]+/g, 'chg');
  expect(plain(body)).toBe(plain(await real.text()));
  const decoded = (value: string | null | undefined): string => plain(Buffer.from(value ?? '', 'base64').toString());
  const shown = new Map(headers.map(([name, value]) => [name.toLowerCase(), value]));
  expect(decoded(shown.get('payment-required'))).toBe(decoded(real.headers.get('payment-required')));
  expect(shown.get('tollgate-reason')).toBe(real.headers.get('tollgate-reason'));

  expect(await tried('GET', '/free')).toMatchObject({
    matched: false,
    payment_required: false,
    answer: null,
    because: [],
  });
  expect(await tried('GET', '/reports/%2e%2e/x')).toMatchObject({
    target: null,
    answer: null,
    problem: { status: 400 },
  });
});
