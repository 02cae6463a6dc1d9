// Charge secrets, API keys and the keys of dashboard tokens are changed one after the other while people read, pay and look
// at their charges: the new one beside the old one, the new one first, the old one gone. No request fails for it.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { renameSync, writeFileSync } from 'node:fs';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChain, USDC, type Chain } from '../support/chain/chain.ts';
import { startFacilitator } from '../support/chain/facilitator.ts';
import { createPayer, type Payer } from '../support/chain/payer.ts';
import { readTerms } from '../support/made-up-payment.ts';
import { until } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const PAY_TO = `0x${'1'.repeat(40)}`;
const PRICE = 10_000n;
const SECRETS = { old: 'the-old-secret-of-charges-32-bytes', next: 'the-next-secret-of-charges-32-byte' };
const KEYS = { old: 'the-old-key-of-an-sdk', next: 'the-next-key-of-an-sdk' };
/** Of each kind of request, between two steps. */
const ENOUGH = 3;

const files = temporaryFolder();
const closers: (() => unknown)[] = [];
let chain: Chain;
let upstream: Upstream;
let payers: Payer[];
let facilitatorUrl = '';
beforeAll(async () => {
  chain = await startChain();
  closers.push(chain.stop);
  const facilitator = await startFacilitator({ rpcUrl: chain.rpcUrl });
  closers.push(facilitator.close);
  facilitatorUrl = facilitator.url;
  upstream = await startUpstream();
  closers.push(upstream.close);
  payers = [await createPayer(chain), await createPayer(chain)];
}, 120_000);
afterAll(async () => {
  for (const close of closers.toReversed()) await close();
  files.remove();
});

type Which = keyof typeof KEYS;

/** Tokens of a dashboard. At a URL that names keys stands the set of these: `/old`, `/old,next`. */
async function startIssuer() {
  const made = async (kid: Which) => {
    const { privateKey, publicKey } = await generateKeyPair('ES256');
    const token = (): Promise<string> =>
      new SignJWT({ scope: 'dashboard' })
        .setProtectedHeader({ alg: 'ES256', kid })
        .setIssuer('tollgate')
        .setAudience('dashboard')
        .setSubject('owner')
        .setIssuedAt()
        .setExpirationTime('10m')
        .sign(privateKey);
    return { token, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' } };
  };
  const issued = { old: await made('old'), next: await made('next') };
  const server = createServer((req, res) => {
    const published = Object.values(issued).filter(({ jwk }) => req.url?.includes(jwk.kid));
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify({ keys: published.map(({ jwk }) => jwk) }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, token: (which: Which) => issued[which].token() };
}

type Order = readonly Which[];
const textOf = (order: Order, issuer: string): string =>
  [
    'workers: 2',
    `proxy: { listen: 127.0.0.1:0, upstream: "${upstream.url}" }`,
    'registry:',
    '  listen: 127.0.0.1:0',
    '  store: sqlite:data/t.db',
    `  jwt: { jwks_url: "${issuer}/${order.join(',')}" }`,
    `  api_keys: [${order.map((which) => `{ name: ${which}, key: ${KEYS[which]}, scopes: [sdk] }`).join(', ')}]`,
    'admin: { listen: 127.0.0.1:0 }',
    `charges: { secrets: [${order.map((which) => SECRETS[which]).join(', ')}] }`,
    `receivers: [{ id: default, network: base-sepolia, pay_to_address: "${PAY_TO}", rpc_url: ${chain.rpcUrl}, facilitators: [{ url: ${facilitatorUrl}, timeouts: { verify: 20s, settle: 20s } }] }]`,
    'routes: [{ route_pattern: "/paid/*", method: GET, amount: "0.01" }]',
  ].join('\n');

async function reload(tollgate: TollgateProcess, file: string, text: string): Promise<void> {
  const told = (): number => tollgate.lines.filter(({ msg }) => msg === 'configuration reloaded').length;
  const before = told();
  writeFileSync(`${file}~`, text);
  renameSync(`${file}~`, file);
  tollgate.signal('SIGHUP');
  await until('the file is taken on', async () => told() > before, 60_000);
}

/** Runs each of `tasks` again and again, all at a time; what one rejects with has failed. */
function keepDoing(tasks: Readonly<Record<string, () => Promise<void>>>) {
  const failed: string[] = [];
  const done = new Map(Object.keys(tasks).map((name) => [name, 0]));
  const over = new AbortController();
  const running = Object.entries(tasks).map(async ([name, task]) => {
    while (!over.signal.aborted) {
      await task().then(
        () => done.set(name, (done.get(name) ?? 0) + 1),
        (error: unknown) => failed.push(`${name}: ${String(error)}`),
      );
    }
  });
  return {
    failed,
    done,
    /** Resolves when each was begun and done some times more. */
    someMore: async () => {
      const wanted = new Map([...done].map(([name, count]) => [name, count + ENOUGH]));
      const isThere = (): boolean => [...wanted].every(([name, count]) => (done.get(name) ?? 0) >= count);
      await until('everything was done some times more', async () => isThere() || failed.length > 0, 90_000);
    },
    end: async () => {
      over.abort();
      await Promise.all(running);
    },
  };
}

test('behaviour: a rotation of all keys fails no request, loses no payment, and ends what the old ones open', async () => {
  const issuer = await startIssuer();
  const file = files.write('tollgate.yaml', textOf(['old'], issuer.url));
  const tollgate = await startProcess({ args: ['serve', '-c', file], listeners: ['proxy', 'registry', 'admin'] });
  closers.push(tollgate.kill);
  const proxy = (target: string): string => `${tollgate.url('proxy')}${target}`;
  const status = async (url: string, headers: Record<string, string> = {}): Promise<number> => {
    const response = await fetch(url, { headers });
    await response.arrayBuffer();
    return response.status;
  };
  const wants = async (wanted: number, url: string, headers?: Record<string, string>): Promise<void> => {
    const got = await status(url, headers);
    if (got !== wanted) throw new Error(`${url} answered ${got}`);
  };
  const quote = async (): Promise<ReturnType<typeof readTerms>> => {
    const response = await fetch(proxy('/paid/page'));
    await response.arrayBuffer();
    if (response.status !== 402) throw new Error(`no terms: ${response.status}`);
    return readTerms(response.headers.get('payment-required') ?? '');
  };
  /** A payment for the terms that are asked now. */
  const sign = async (payer: Payer | undefined): Promise<Record<string, string>> => {
    const accepted = await quote();
    if (payer === undefined) throw new Error('no payer');
    const payload = await payer.authorize({ to: accepted.payTo, value: BigInt(accepted.amount), asset: USDC });
    return {
      'payment-signature': Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload })).toString('base64'),
    };
  };
  const routes = (): string => `${tollgate.url('registry')}/v1/protected-routes/routes`;
  const charges = (): string => `${tollgate.url('registry')}/v1/billing/charges`;
  const bearer = (credential: string): Record<string, string> => ({ authorization: `Bearer ${credential}` });

  let used: Which = 'old';
  let paid = 0;
  const pay = (payer: Payer | undefined) => async (): Promise<void> => {
    await wants(200, proxy('/paid/page'), await sign(payer));
    paid++;
  };
  const load = keepDoing({
    free: () => wants(200, proxy('/free')),
    'free too': () => wants(200, proxy('/free')),
    paid: pay(payers[0]),
    'paid too': pay(payers[1]),
    'an SDK': () => wants(200, routes(), bearer(KEYS[used])),
    'a dashboard': async () => wants(200, charges(), bearer(await issuer.token(used))),
  });
  await load.someMore();
  const quotedByOld = await sign(payers[0]);
  const late = await sign(payers[0]);
  const { extra } = await quote();

  await reload(tollgate, file, textOf(['old', 'next'], issuer.url));
  await load.someMore();
  used = 'next';
  await reload(tollgate, file, textOf(['next', 'old'], issuer.url));
  await load.someMore();
  await wants(200, proxy('/paid/page'), quotedByOld);
  const quotedByNext = await sign(payers[0]);
  await reload(tollgate, file, textOf(['next'], issuer.url));
  await load.someMore();
  await load.end();
  await wants(200, proxy('/paid/page'), quotedByNext);

  expect(load.failed).toEqual([]);
  // What the old ones opened is closed.
  expect(await status(routes(), bearer(KEYS.old))).toBe(401);
  expect(await status(charges(), bearer(await issuer.token('old')))).toBe(401);
  const { external_ref: id } = extra as { external_ref: string };
  const answer = await fetch(`${tollgate.url('registry')}/v1/billing/why/${id}`, {
    headers: bearer(await issuer.token('next')),
  });
  expect(await answer.json()).toMatchObject({ quote: { signed_here: false } });
  // Whose quote is not known any more pays what is asked now.
  await wants(200, proxy('/paid/page'), late);
  // Each payment once: on the chain, at the API, and in the ledger.
  const all = paid + 3;
  expect(await chain.balanceOf(PAY_TO)).toBe(BigInt(all) * PRICE);
  expect(upstream.seen.filter(({ url }) => url === '/paid/page')).toHaveLength(all);
  await until('all are delivered in the ledger', async () => {
    const text = await (await fetch(`${tollgate.url('admin')}/metrics`)).text();
    return text.includes(`\ntollgate_charges{state="delivered"} ${all}\n`);
  });
}, 300_000);
