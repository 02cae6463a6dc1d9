// Two hundred identical payments at once, at two sidecars that share the ledger of their registry over HTTP: one is
// served, nobody else is, and the money moves once.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PAY_TO, startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';

const DUPLICATES = 200;
const files = temporaryFolder();
let paid: PaidTollgate;
let sidecars: TollgateProcess[] = [];
let release: () => void = () => undefined;

beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: ['* /thing/* 0.10'],
    handle: (req, res) => {
      req.resume();
      release = () => res.end('the thing');
    },
  });
  const key = await paid.cli('keys', 'create', '--name', 'sidecars', '--scope', 'sdk,ledger');
  const start = (name: string): Promise<TollgateProcess> => {
    const config = files.write(
      `${name}.yaml`,
      [
        `proxy: { listen: 127.0.0.1:0, upstream: ${paid.upstream.url}, timeouts: { drain_delay: 0s, drain: 5s } }`,
        `sync: { registry_url: ${paid.tollgate().url('registry')}, api_key: "${key}", snapshot_file: ${name}/routes.json }`,
        'admin: { listen: 127.0.0.1:0 }',
        'charges: { secrets: ["one secret of both the sidecars, long enough"] }',
        'receivers:',
        `  - { id: default, network: base-sepolia, pay_to_address: "${PAY_TO}", facilitators: [{ url: ${paid.facilitator.url} }], rpc_url: ${paid.chain.rpcUrl} }`,
      ].join('\n'),
    );
    return startProcess({ args: ['serve', '-c', config], listeners: ['proxy', 'admin'] });
  };
  sidecars = await Promise.all([start('one'), start('two')]);
}, 180_000);

afterAll(async () => {
  await Promise.all(sidecars.map((sidecar) => sidecar.kill()));
  await paid?.stop();
  files.remove();
});

test.each(['GET', 'POST'])(
  'attack: 200 concurrent duplicates of a %s over two processes buy one service for one price',
  async (method) => {
    const target = `/thing/${method}`;
    const before = { earned: await paid.earned(), asked: paid.upstream.seen.length };
    const url = (n: number): string => `${sidecars[n % 2]?.url('proxy') ?? ''}${target}`;
    const accepted = await until('both sidecars have the route', async () => {
      const asked = await Promise.all([0, 1].map((n) => fetch(url(n), { method })));
      await Promise.all(asked.map((response) => response.arrayBuffer()));
      if (asked.some(({ status }) => status !== 402)) return undefined;
      const header = asked[0]?.headers.get('payment-required') ?? '';
      return (
        JSON.parse(Buffer.from(header, 'base64').toString()) as { accepts: Parameters<PaidTollgate['sign']>[0][] }
      ).accepts[0];
    });
    const credential = await paid.sign(accepted);
    const statuses: number[] = [];
    const answers = Array.from({ length: DUPLICATES }, async (_, n) => {
      const response = await fetch(url(n), { method, headers: { 'payment-signature': credential } });
      statuses.push(response.status);
      return { status: response.status, body: await response.text() };
    });
    await until('all but one are answered', async () => statuses.length === DUPLICATES - 1, 15_000);
    await until('the one is asking the upstream', async () => paid.upstream.seen.length > before.asked);
    release();
    const all = await Promise.all(answers);
    expect(all.filter(({ status }) => status === 200).map(({ body }) => body)).toEqual(['the thing']);
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200, 409]));
    expect(paid.upstream.seen.length - before.asked).toBe(1);
    expect((await paid.earned()) - before.earned).toBe(100_000n);
    const charges = await until('it is delivered', async () => {
      const seen = await paid.charges();
      return seen.every(({ status }) => status === 'delivered') ? seen : undefined;
    });
    expect(BigInt(charges.length) * 100_000n).toBe(await paid.earned());
  },
);
