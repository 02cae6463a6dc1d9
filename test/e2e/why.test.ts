// Why: an unpaid 402, a refusal, a paid request, a transaction, asked by command and over the API, beside a running process
// and without one.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import type { WhyReport } from '../../src/registry/charges/charge-schemas.ts';
import { fakeIo } from '../cli/support.ts';
import { startPaidTollgate, type Accepted, type PaidTollgate } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder } from '../support/process.ts';

let paid: PaidTollgate;
let token: string;
beforeAll(async () => {
  paid = await startPaidTollgate({ routes: ['GET /reports/* 0.10', 'GET /dear 5'] });
  token = await paid.cli('token');
}, 180_000);
afterAll(() => paid?.stop());

/** The end of an id may begin with a dash: behind `--` it is taken for no flag. */
async function why(id: string, ...flags: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const io = fakeIo({ folder: '/nowhere' });
  const code = await runCommandLine(['why', '-c', paid.config, ...flags, '--', id], COMMANDS, io);
  return { code, stdout: io.stdout(), stderr: io.stderr() };
}

async function ask(id: string, authorization = `Bearer ${token}`): Promise<{ status: number; body: WhyReport }> {
  const url = `${paid.tollgate().url('registry')}/v1/billing/why/${encodeURIComponent(id)}`;
  const response = await fetch(url, { headers: { authorization } });
  return { status: response.status, body: (await response.json()) as WhyReport };
}

describe('beside the process that refused', () => {
  test('behaviour: why knows an unpaid 402 by its request id, its charge id, the beginning and the end of that', async () => {
    const response = await fetch(paid.url('/reports/q3?secret=canary'), { headers: { 'x-request-id': 'unpaid-1' } });
    const { charge_id: id } = (await response.json()) as { charge_id: string };
    for (const asked of ['unpaid-1', id, id.slice(0, 104), `chg_...${id.slice(-12)}`, id.slice(-12)]) {
      const { code, stdout, stderr } = await why(asked);
      expect([asked, code, stderr]).toEqual([asked, 0, '']);
      expect(stdout).toContain('402 at ');
      expect(stdout).toContain(
        'GET /reports/q3\n  because: no payment was presented (payment_required)\n  route: /reports/*',
      );
      expect(stdout).toContain(`offered: ${id}`);
      expect(stdout).toContain('The id of a 402: 0.10 USD for GET under GET /reports/*, asked at about ');
      expect(stdout).toMatch(/good until \S+ \(in \d+ minutes?\); no payment was claimed for it/);
      expect(stdout).not.toContain('canary');
    }
    const { status, body } = await ask(id);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      charges: [],
      quote: {
        signed_here: true,
        amount: '0.10',
        currency: 'USD',
        route_pattern: '/reports/*',
        method: 'GET',
        expired: false,
      },
      refusals: [{ request_id: 'unpaid-1', status: 402, reason: 'payment_required', path: '/reports/q3' }],
      refusals_elsewhere: false,
    });
    expect(JSON.parse((await why(id, '--json')).stdout)).toEqual(body);
  });

  test('behaviour: why of a request id that stands for several requests tells all of them', async () => {
    const headers = { 'x-request-id': 'several' };
    await fetch(paid.url('/reports/1'), { headers });
    await fetch(paid.url('/a%2fb'), { headers });
    await fetch(paid.url('/free'), { headers });
    const { body } = await ask('several');
    expect(body.refusals.map(({ status, reason, path }) => [status, reason, path])).toEqual([
      [400, 'target_ambiguous', '/a%2fb'],
      [402, 'payment_required', '/reports/1'],
    ]);
    expect((await why('several')).stdout).toContain('because: Ambiguous request target (target_ambiguous)');
  });

  test('behaviour: why knows a paid request by its charge, its request id and its transaction', async () => {
    const accepted = await paid.quote('/reports/7');
    const credential = await paid.sign(accepted);
    const response = await paid.pay('/reports/7', credential, { headers: { 'x-request-id': 'paid-1' } });
    expect(response.status).toBe(200);
    await response.arrayBuffer();
    const receipt = JSON.parse(Buffer.from(response.headers.get('payment-response') ?? '', 'base64').toString());
    const id = accepted.extra.external_ref;
    await expect.poll(async () => (await ask(id)).body.charges[0]?.status).toBe('delivered');
    for (const asked of [
      id,
      `chg_...${id.slice(-12)}`,
      'paid-1',
      receipt.transaction,
      receipt.transaction.toUpperCase().replace('0X', '0x'),
    ]) {
      const { code, stdout } = await why(asked);
      expect([asked, code]).toEqual([asked, 0]);
      expect(stdout).toContain(`Charge ${id}: delivered, 0.10 USD from ${paid.payer.address.toLowerCase()}\n`);
      expect(stdout).toContain('request: GET /reports/7, request paid-1\n');
      expect(stdout).toContain(`transaction: ${receipt.transaction}\n`);
      expect(stdout).toContain('The money moved and the answer was delivered.');
    }
  });

  test('behaviour: the request id of a 402 whose quote was paid leads to the charge', async () => {
    const response = await fetch(paid.url('/reports/9'), { headers: { 'x-request-id': 'offered-1' } });
    const { charge_id: id } = (await response.json()) as { charge_id: string };
    const header = Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString();
    const [accepted] = (JSON.parse(header) as { accepts: Accepted[] }).accepts;
    if (accepted === undefined) throw new Error('nothing is offered');
    const paying = await paid.pay('/reports/9', await paid.sign(accepted), { headers: { 'x-request-id': 'pays-1' } });
    expect(paying.status).toBe(200);
    await paying.arrayBuffer();
    await expect.poll(async () => (await ask(id)).body.charges[0]?.status).toBe('delivered');
    const { body } = await ask('offered-1');
    expect(body).toMatchObject({ charges: [{ id, status: 'delivered' }], refusals: [{ charge_id: id, status: 402 }] });
    const { code, stdout } = await why('offered-1');
    expect(code).toBe(0);
    expect(stdout).toContain(`Charge ${id}: delivered, 0.10 USD from `);
    expect(stdout).toContain('request: GET /reports/9, request pays-1\n');
    expect(stdout).toContain(
      `  offered: ${id}\n  The quote of this request was paid: charge chg_...${id.slice(-12)}, delivered.`,
    );
    expect(stdout).toContain('a payment was presented for it');
    expect(stdout).not.toContain('no payment was claimed for it');
  });

  test('behaviour: why of a request id for several requests says of each quote whether it was paid', async () => {
    const headers = { 'x-request-id': 'offered-2' };
    const accepted = await Promise.all(
      [1, 2].map(async () => {
        const response = await fetch(paid.url('/reports/10'), { headers });
        const header = Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString();
        return (JSON.parse(header) as { accepts: Accepted[] }).accepts[0] as Accepted;
      }),
    );
    const [first] = accepted;
    if (first === undefined) throw new Error('nothing is offered');
    const paying = await paid.pay('/reports/10', await paid.sign(first));
    await paying.arrayBuffer();
    const id = first.extra.external_ref;
    await expect.poll(async () => (await ask(id)).body.charges[0]?.status).toBe('delivered');
    const { stdout } = await why('offered-2');
    expect(stdout.match(/The quote of this request was paid/g)).toHaveLength(1);
    expect(stdout.match(/No payment was claimed for the quote of this request/g)).toHaveLength(1);
  });

  test('behaviour: the difference between a payment and its quote stands in Tollgate-Reason, and in why', async () => {
    const accepted = await paid.quote('/reports/1');
    const differing = await paid.pay('/dear', await paid.sign(accepted), { headers: { 'x-request-id': 'differs-1' } });
    await differing.arrayBuffer();
    const reason = 'quote_mismatch: it was made for another route than GET /dear';
    expect([differing.status, differing.headers.get('tollgate-reason')]).toEqual([402, reason]);
    const { stdout } = await why('differs-1');
    expect(stdout).toContain(`because: the payment was made for another route, method or price input (${reason})`);
  });

  test('behaviour: why tells the reason that a payment was refused', async () => {
    const accepted = await paid.quote('/dear');
    const credential = await paid.sign(accepted, paid.payer, { value: 1n });
    const response = await paid.pay('/dear', credential, { headers: { 'x-request-id': 'refused-1' } });
    expect(response.status).toBe(402);
    const { body } = await ask('refused-1');
    expect(body.refusals).toMatchObject([{ status: 402, path: '/dear' }]);
    expect(body.refusals[0]?.reason).toBe(response.headers.get('tollgate-reason'));
  });

  test('refuses: why of what nobody knows, of what is no id, and by who may not ask', async () => {
    expect(await why('nobody-knows')).toMatchObject({ code: 1, stderr: 'Nothing is known of nobody-knows.\n' });
    expect((await ask('nobody-knows')).status).toBe(404);
    expect((await why('')).code).toBe(64);
    expect((await why('two words')).code).toBe(64);
    expect((await ask('unpaid-1', 'Bearer nothing')).status).toBe(401);
    const forged = `chg_${'A'.repeat(112)}`;
    expect((await ask(forged)).body.quote).toMatchObject({ signed_here: false, amount: null });
    expect((await why(forged)).stdout).toContain('was not signed with a secret that is known here');
  });

  test('behaviour: why without a running process says what the ledger and the id still know', async () => {
    const accepted = await paid.quote('/reports/8');
    const [charge] = await paid.charges();
    await paid.tollgate().kill();
    const quote = await why(accepted.extra.external_ref);
    expect([quote.code, quote.stderr]).toEqual([
      0,
      'No Tollgate runs on this configuration, so what it refused is not known.\n',
    ]);
    expect(quote.stdout).toContain('The id of a 402: 0.10 USD');
    expect((await why(charge?.id ?? '')).stdout).toContain(`Charge ${charge?.id}: delivered`);
    expect((await why('unpaid-1')).code).toBe(1);
    await paid.restart();
  });
});

test('behaviour: why of a registry alone says which process to ask', async () => {
  const files = temporaryFolder();
  const config = files.write(
    'registry.yaml',
    'registry: { listen: "127.0.0.1:0", store: "sqlite:data/r.db" }\nadmin: { listen: "127.0.0.1:0" }\n',
  );
  const registry = await startProcess({ args: ['serve', '-c', config], listeners: ['registry', 'admin'] });
  try {
    const io = fakeIo({ folder: files.folder });
    expect(await runCommandLine(['token', '-c', config], COMMANDS, io)).toBe(0);
    const response = await fetch(`${registry.url('registry')}/v1/billing/why/unpaid-1`, {
      headers: { authorization: `Bearer ${io.stdout().trim()}` },
    });
    expect([response.status, ((await response.json()) as { detail: string }).detail]).toEqual([
      404,
      expect.stringContaining('run `tollgate why ID` beside that sidecar'),
    ]);
  } finally {
    await registry.kill();
    files.remove();
  }
});

test('behaviour: why beside a sidecar tells a refusal’s reason, and a charge out of the registry’s ledger', async () => {
  const files = temporaryFolder();
  const secret = 'a-secret-of-the-why-test-32-bytes';
  const key = 'a-key-of-both-scopes-1';
  const receivers = `receivers: [{ id: default, network: base-sepolia, pay_to_address: "0x${'1'.repeat(40)}", facilitators: [http://127.0.0.1:1], rpc_url: none }]`;
  const registryConfig = files.write(
    'registry.yaml',
    `registry: { listen: "127.0.0.1:0", store: "sqlite:r/r.db", jwt: { secret: ${secret} }, api_keys: [{ name: a, key: ${key}, scopes: [sdk, ledger] }] }
admin: { listen: "127.0.0.1:0" }
routes: [{ route_pattern: "/paid/*", amount: "0.10" }]
`,
  );
  const registry = await startProcess({ args: ['serve', '-c', registryConfig], listeners: ['registry', 'admin'] });
  const config = files.write(
    'sidecar.yaml',
    `proxy: { listen: "127.0.0.1:0", upstream: "http://127.0.0.1:1" }
sync: { registry_url: "${registry.url('registry')}", api_key: ${key}, snapshot_file: "s/routes.json" }
charges: { secrets: [${secret}] }
admin: { listen: "127.0.0.1:0" }
${receivers}
`,
  );
  const sidecar = await startProcess({ args: ['serve', '-c', config], listeners: ['proxy', 'admin'] });
  try {
    // It listens before its first set is there.
    await sidecar.line(({ msg }) => msg === 'routes synced');
    const response = await fetch(`${sidecar.url('proxy')}/paid/x`, { headers: { 'x-request-id': 'sidecar-1' } });
    expect(response.status).toBe(402);
    const { charge_id: id } = (await response.json()) as { charge_id: string };
    for (const asked of ['sidecar-1', id]) {
      const io = fakeIo({ folder: '/nowhere' });
      expect([asked, await runCommandLine(['why', asked, '-c', config], COMMANDS, io)]).toEqual([asked, 0]);
      expect(io.stdout()).toContain('GET /paid/x\n  because: no payment was presented (payment_required)');
      expect(io.stderr()).toContain('The ledger is the registry’s');
    }
  } finally {
    await sidecar.kill();
    await registry.kill();
    files.remove();
  }
});
