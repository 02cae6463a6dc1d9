// A decision listener without a proxy: in a process of its own, over several workers, and as a sidecar of a registry elsewhere. And a
// stream of raw questions that a generator makes, of which none is allowed but for what is free.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, SECRET, type Decided } from '../support/asker.ts';
import { USDC } from '../support/chain/chain.ts';
import { PAY_TO, startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { runQuestions } from '../lab/questions/questions.ts';

const files = temporaryFolder();
let paid: PaidTollgate;
let own: TollgateProcess;
let sidecar: TollgateProcess;

const listener = `listen: 127.0.0.1:0, dialect: nginx, secret: ${SECRET}, timeouts: { drain_delay: 0s, drain: 5s }`;
beforeAll(async () => {
  paid = await startPaidTollgate({ routes: ['GET /paid/* 0.10'] });
  const receivers = `receivers: [{ id: default, network: base-sepolia, pay_to_address: "${PAY_TO}", facilitators: [{ url: ${paid.facilitator.url} }], rpc_url: ${paid.chain.rpcUrl} }]`;
  const alone = files.write(
    'alone.yaml',
    [
      `decision: { ${listener} }`,
      'registry: { listen: 127.0.0.1:0, store: sqlite:alone/tollgate.db }',
      'admin: { listen: 127.0.0.1:0 }',
      'workers: 2',
      receivers,
      'routes: [{ method: "*", route_pattern: "/paid/*", amount: "0.10" }]',
    ].join('\n'),
  );
  own = await startProcess({ args: ['serve', '-c', alone], listeners: ['decision', 'admin'] });
  const key = await paid.cli('keys', 'create', '--name', 'sidecar', '--scope', 'sdk,ledger');
  const beside = files.write(
    'sidecar.yaml',
    [
      `decision: { ${listener} }`,
      `sync: { registry_url: ${paid.tollgate().url('registry')}, api_key: "${key}", snapshot_file: sidecar/routes.json }`,
      'admin: { listen: 127.0.0.1:0 }',
      'charges: { secrets: ["one secret of the sidecar, long enough"] }',
      receivers,
    ].join('\n'),
  );
  sidecar = await startProcess({ args: ['serve', '-c', beside], listeners: ['decision', 'admin'] });
}, 180_000);
afterAll(async () => {
  await Promise.all([own?.kill(), sidecar?.kill()]);
  await paid?.stop();
  files.remove();
});

test.each(['alone', 'sidecar'] as const)(
  'behaviour: a decision without a proxy (%s) is ready, asks for money, allows a payment once, and repeats the allow to the same request',
  { timeout: 60_000 },
  async (which) => {
    const tollgate = which === 'alone' ? own : sidecar;
    const port = tollgate.port('decision');
    const asks = (target: string, headers: Record<string, string> = {}, requestId?: string): Promise<Decided> =>
      ask(port, 'nginx', { target, headers, ...(requestId === undefined ? {} : { requestId }) });
    await until('it is ready', async () => (await fetch(`${tollgate.url('admin')}/readyz`)).status === 200);
    expect((await asks('/free/a')).allows).toBe(true);
    const demanded = await asks(`/paid/${which}`);
    expect(demanded.status).toBe(402);
    const { accepts } = JSON.parse(Buffer.from(demanded.header('payment-required') ?? '', 'base64').toString()) as {
      accepts: [{ amount: string; payTo: string; extra: { external_ref: string } }];
    };
    const [accepted] = accepts;
    const payload = await paid.payer.authorize({ to: accepted.payTo, value: BigInt(accepted.amount), asset: USDC });
    const credential = Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload })).toString('base64');
    const earned = await paid.earned();
    const pay = (id: string): Promise<Decided> => asks(`/paid/${which}`, { 'payment-signature': credential }, id);
    // Each connection may come to another worker.
    const first = await Promise.all([pay('same'), pay('same'), pay('same'), pay('same')]);
    for (const each of first) expect([each.status, each.allows]).toEqual([200, true]);
    for (const other of await Promise.all([pay('other-1'), pay('other-2')])) {
      expect(other).toMatchObject({ status: 409, allows: false });
    }
    expect(await paid.earned()).toBe(earned + 100_000n);
  },
);

/** `TOLLGATE_QUESTIONS=100000` is the long tier. */
const QUESTIONS = Number(process.env['TOLLGATE_QUESTIONS'] ?? 3_000);

test(
  'attack: of thousands of made-up raw questions none is answered 2xx but an allow of what is free',
  { timeout: 120_000 + QUESTIONS * 10 },
  async () => {
    const port = own.port('decision');
    const { asked, allowed, wrong } = await runQuestions({ port, secret: SECRET, seed: 39, questions: QUESTIONS });
    expect(wrong).toEqual([]);
    expect(asked).toBe(QUESTIONS);
    expect(allowed).toBeGreaterThan(QUESTIONS / 500);
  },
);
