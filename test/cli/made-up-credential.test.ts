// What a plan with `ask` opens to anybody is found before somebody else finds it: `probe --config` and `check --online` send a
// made-up credential to a real upstream. A registry over HTTP holds the routes of a sidecar.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RequestListener } from 'node:http';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { ADDRESS, SECRET } from '../config/support.ts';
import { SDK_KEY, startRegistry } from '../registry/kit.ts';
import { temporaryFolder } from '../support/process.ts';
import { startProbed } from './probe-support.ts';
import { fakeIo } from './support.ts';

const files = temporaryFolder();
afterAll(() => files.remove());

const SELLING = `
receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "${ADDRESS}", facilitators: ["http://127.0.0.1:9"] }]
selling:
  plans: [{ id: own, customers: [mine] }, { id: cards, customers: [card] }, { id: plain, free: { requests: 1, window: hour, by: address, identities: 10 } }]
  customers: [{ id: mine, header: Authorization, ask: { statuses: [401] } }, { id: card, header: X-Card, ask: { statuses: [403] } }]
charges: { secrets: ["${SECRET}"] }
`;

const ROUTES = `
routes:
  - { route_pattern: "/strict/a", method: GET, amount: "1", plan_id: own }
  - { route_pattern: "/open/:id", method: GET, amount: "1", plan_id: own }
  - { route_pattern: "/cards/*", method: GET, amount: "1", plan_id: cards }
  - { route_pattern: "/open/:id", method: POST, amount: "1", plan_id: own }
  - { route_pattern: "/paused/a", method: GET, amount: "1", plan_id: own, status: paused }
  - { route_pattern: "/plain/a", method: GET, amount: "1", plan_id: plain }
  - { route_pattern: "/none/a", method: GET, amount: "1" }
`;

function write(upstream: string, rest: string): string {
  const file = join(files.folder, `${new URL(upstream).port}.yaml`);
  writeFileSync(file, `proxy: { listen: "127.0.0.1:0", upstream: "${upstream}" }\n${rest}${SELLING}`);
  return file;
}
const own = (upstream: string): string =>
  write(upstream, `registry: { listen: "127.0.0.1:0", store: "sqlite:t.db" }\n${ROUTES}`);

async function run(...argv: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const io = fakeIo({ folder: files.folder });
  const code = await runCommandLine(argv, COMMANDS, io);
  return { code, stdout: io.stdout(), stderr: io.stderr() };
}

type Shown = { readonly authorization: string | undefined; readonly card: string | undefined };

/** An upstream that looks at credentials, except below the paths that `opens` says. */
function signingIn(opens: (path: string) => boolean, shown: Shown[] = []): RequestListener {
  return ({ url = '', headers }, res) => {
    const card = headers['x-card'];
    shown.push({ authorization: headers.authorization, card: typeof card === 'string' ? card : undefined });
    const status = opens(url) ? 200 : url.startsWith('/cards') ? 403 : 401;
    res.writeHead(status).end();
  };
}

describe('tollgate probe --config', () => {
  test('attack: a route that a made-up credential opens is exit code 1 and a sentence; others are told as refused', async () => {
    const shown: Shown[] = [];
    const upstream = await startProbed(signingIn((path) => path.startsWith('/open'), shown));
    const { code, stdout } = await run('probe', '--config', own(upstream.url));
    expect(code).toBe(1);
    expect(stdout).toContain(
      'GET /open/:id (plan own): GET /open/1 with a made-up authorization is answered 200: the customers "mine" (ask) open it to everybody; let the API answer 401 to a credential that it does not know, or take them out of the plan',
    );
    expect(stdout).toContain('GET /strict/a (plan own): GET /strict/a with a made-up authorization is refused (401)');
    expect(stdout).toContain('GET /cards/* (plan cards): GET /cards/1 with a made-up x-card is refused (403)');
    // Nothing but GET, nothing without `ask`, nothing that is free already.
    expect(upstream.seen.toSorted()).toEqual(['GET /cards/1', 'GET /open/1', 'GET /strict/a']);
    for (const { authorization, card } of shown)
      expect(card ?? authorization).toMatch(
        card === undefined ? /^Bearer tollgate-probe-\w{32}$/ : /^tollgate-probe-\w{32}$/,
      );
  });

  test('behaviour: an API that refuses them all is exit code 0, and a path that is named is asked as it is', async () => {
    const upstream = await startProbed((req, res) => {
      // Without a credential the API serves what it serves to anybody, so that its spellings can be told.
      const known = req.url === '/open/q3?x=1' || req.url === '/strict/a' || req.url === '/cards/1';
      res.statusCode = known ? ((req.headers.authorization ?? req.headers['x-card']) === undefined ? 200 : 401) : 404;
      if (req.url === '/cards/1') res.statusCode = 403;
      res.end(req.url);
    });
    const { code, stdout } = await run(...['probe', '--config', own(upstream.url), '--path', '/open/q3?x=1', '--json']);
    const { made_up_credentials: tried } = JSON.parse(stdout) as {
      made_up_credentials: { target: string; found: string; answer: number }[];
    };
    expect(tried.map(({ target, found, answer }) => [target, found, answer])).toEqual([
      ['/strict/a', 'refused', 401],
      ['/open/q3?x=1', 'refused', 401],
      ['/cards/1', 'refused', 403],
    ]);
    expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ told: true })]);
  });

  test('refuses: to call a 404 safe; an upstream that is away is 69', async () => {
    const upstream = await startProbed((_, res) => void res.writeHead(404).end());
    const { code, stdout } = await run('probe', '-c', own(upstream.url));
    expect([
      code,
      stdout.match(/is answered 404, which tells nothing; name a path that the API answers/g)?.length,
    ]).toEqual([0, 3]);
    const away = await run('probe', '-c', own('http://127.0.0.1:9'));
    expect([away.code, away.stdout]).toEqual([69, expect.stringContaining('got no answer: ECONNREFUSED')]);
  });
});

describe('tollgate check --online', () => {
  test('attack: a made-up credential that is let through is exit code 1 with a sentence', async () => {
    const upstream = await startProbed(signingIn((path) => path.startsWith('/open')));
    const { code, stdout } = await run('check', '--online', '-c', own(upstream.url));
    expect(code).toBe(1);
    expect(stdout).toContain(
      'cannot_serve: upstream: GET /open/:id (plan own): GET /open/1 with a made-up authorization is answered 200',
    );
    expect(stdout).toContain('ok: upstream: GET /strict/a (plan own)');
    expect(upstream.seen.toSorted()).toEqual(['GET /cards/1', 'GET /open/1', 'GET /strict/a']);
  });

  test('attack: a sidecar asks about the routes that its registry serves', async () => {
    const registry = await startRegistry();
    onTestFinished(() => registry.close());
    const body = { route_pattern: '/open/a', method: 'GET', amount: '1.00', plan_id: 'own' };
    expect(await registry.dashboard('POST', '/v1/billing/protected-routes', { body })).toMatchObject({ status: 201 });
    const upstream = await startProbed(signingIn((path) => path.startsWith('/open')));
    const sync = `sync: { registry_url: "http://127.0.0.1:${registry.port}", api_key: "${SDK_KEY}" }\n`;
    const { code, stdout } = await run('check', '--online', '-c', write(upstream.url, sync));
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining('GET /open/a with a made-up authorization is answered 200'),
    ]);
  });

  test('behaviour: without a plan that uses ask the upstream gets no request', async () => {
    const upstream = await startProbed(signingIn(() => true));
    const file = own(upstream.url);
    const plain = SELLING.replaceAll('customers: [mine]', '')
      .replaceAll(', customers: [card]', '')
      .replace('own, ', 'own');
    writeFileSync(
      file,
      `proxy: { listen: "127.0.0.1:0", upstream: "${upstream.url}" }\nregistry: { listen: "127.0.0.1:0", store: "sqlite:t.db" }\n${ROUTES}${plain}`,
    );
    const { stdout } = await run('check', '--online', '-c', file);
    expect([stdout.includes('takes connections'), upstream.seen]).toEqual([true, []]);
  });
});

test('behaviour: check says in a line for each plan what decides, why where a request stands that a plan let pass', async () => {
  const file = own('http://127.0.0.1:9');
  const { stdout } = await run('check', '-c', file);
  expect(stdout).toContain('  plan own: free for customers of mine, then a payment of the price of its route\n');
  expect(stdout).toContain(
    '  plan plain: 1 free request an hour for each address, if no payment is presented, then a payment of the price of its route\n',
  );
  // A command that makes the store, so that there is something to look in.
  await run('keys', 'create', '--name', 'app', '--scope', 'sdk', '-c', file);
  const { code, stderr } = await run('why', 'nobody-knows', '-c', file);
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(
      /Nothing is known of nobody-knows\.\n.*in the log alone.*\n.*observed .*customer .*pass .*quota/,
    ),
  ]);
});
