// `node bench/paid.ts [--seconds S] [--connections N]`: paid requests per second and core, with a facilitator that says yes
// at once, in both settle modes, beside free requests on the same process; and what free requests notice. Every request
// carries a payment of its own. The signatures are made up: who checks them is the facilitator, and its time is not ours.
// What it does not show: a real facilitator takes tens of milliseconds, which is waiting and not work.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent, createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { startProcess, temporaryFolder } from '../test/support/process.ts';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '4' }, connections: { type: 'string', default: '32' } },
});
const seconds = Number(values.seconds);
const connections = Number(values.connections);
const PAYER_COUNT = 64;
const PAY_TO = '0x1111111111111111111111111111111111111111';
const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';
const TICKS_PER_SECOND = 100;
const BUSY_PAYERS = 4;

type Authorization = { readonly from: string; readonly nonce: string };
type Call = { readonly paymentPayload: { readonly payload: { readonly authorization: Authorization } } };
type Accepted = { readonly extra: { readonly external_ref: string } };

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

const upstream = createServer((_req, res) => res.end('paid for'));
const facilitator = createServer((req, res) => {
  let text = '';
  req.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  req.on('end', () => {
    const { from, nonce } = (JSON.parse(text) as Call).paymentPayload.payload.authorization;
    const answer = req.url?.endsWith('/verify')
      ? { isValid: true, payer: from }
      : { success: true, transaction: nonce, network: 'eip155:84532', payer: from };
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify(answer));
  });
});
const ports = { upstream: await listen(upstream), facilitator: await listen(facilitator) };
const files = temporaryFolder();
const config = files.write(
  'tollgate.yaml',
  `
proxy: { listen: 127.0.0.1:0, upstream: http://127.0.0.1:${ports.upstream}, timeouts: { drain_delay: 0s } }
registry: { listen: 127.0.0.1:0, store: sqlite:data/tollgate.db }
admin: { listen: 127.0.0.1:0 }
log: { level: info, access: false }
charges: { max_unsettled_per_payer: 1000 }
receivers:
  - { id: default, network: base-sepolia, pay_to_address: "${PAY_TO}", facilitators: [http://127.0.0.1:${ports.facilitator}] }
routes: [{ method: "*", route_pattern: /paid/*, amount: "0.01" }]
`,
);
const served = await startProcess({ args: ['serve', '-c', config], listeners: ['proxy', 'registry', 'admin'] });
const agent = new Agent({ keepAlive: true, maxSockets: connections + BUSY_PAYERS });

function send(
  method: string,
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; demanded: string | undefined }> {
  return new Promise((resolve, reject) => {
    const req = request({ port: served.port('proxy'), host: '127.0.0.1', method, path, headers, agent }, (res) => {
      const demanded = res.headers['payment-required'];
      res
        .resume()
        .on('end', () =>
          resolve({ status: res.statusCode ?? 0, demanded: typeof demanded === 'string' ? demanded : undefined }),
        );
    });
    req.on('error', reject);
    req.end();
  });
}

const payers = Array.from({ length: PAYER_COUNT }, () => `0x${randomBytes(20).toString('hex')}`);
let made = 0;
function credential(terms: object): string {
  const authorization = {
    from: payers[made++ % PAYER_COUNT],
    to: PAY_TO,
    value: '10000',
    validAfter: '0',
    validBefore: String(Math.floor(Date.now() / 1000) + 250),
    nonce: `0x${randomBytes(32).toString('hex')}`,
  };
  const { extra, ...rest } = terms as Accepted & Record<string, unknown>;
  // Without the charge id each payment is bound to the route's current price: one 402 serves the whole run.
  const { external_ref: _ref, ...domain } = extra as Record<string, unknown>;
  return Buffer.from(
    JSON.stringify({
      x402Version: 2,
      accepted: { ...rest, asset: USDC, extra: domain },
      payload: { signature: `0x${'11'.repeat(65)}`, authorization },
    }),
  ).toString('base64');
}

function cpuTicks(): number {
  const fields = readFileSync(`/proc/${served.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return Number(fields[11]) + Number(fields[12]);
}

async function measure(
  name: string,
  method: string,
  path: string,
  expected: number,
  headersFor: () => Record<string, string>,
): Promise<void> {
  const run = async (ms: number): Promise<{ count: number; wrong: number; took: number[] }> => {
    const end = performance.now() + ms;
    const took: number[] = [];
    let wrong = 0;
    await Promise.all(
      Array.from({ length: connections }, async () => {
        while (performance.now() < end) {
          const headers = headersFor();
          const startedAt = performance.now();
          const { status } = await send(method, path, headers);
          took.push(performance.now() - startedAt);
          if (status !== expected) wrong++;
        }
      }),
    );
    return { count: took.length, wrong, took };
  };
  await run(1000);
  const [before, startedAt] = [cpuTicks(), performance.now()];
  const { count, wrong, took } = await run(seconds * 1000);
  const cpuUs = ((cpuTicks() - before) / TICKS_PER_SECOND / count) * 1e6;
  const rate = count / ((performance.now() - startedAt) / 1000);
  const sorted = took.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1);
  console.log(
    `| ${name} | ${cpuUs.toFixed(0)} | ${Math.round(1e6 / cpuUs)} | ${Math.round(rate)} | ${at(0.5)} | ${at(0.99)} |${wrong > 0 ? ` ${wrong} WRONG ANSWERS` : ''}`,
  );
  if (wrong > 0) process.exitCode = 1;
}

const { demanded } = await send('GET', '/paid/x', {});
const terms = (JSON.parse(Buffer.from(demanded ?? '', 'base64').toString()) as { accepts: [object] }).accepts[0];
const paying = (): Record<string, string> => ({ 'payment-signature': credential(terms) });

console.log('| request | CPU us (all threads) | a second and core | a second here | p50 ms | p99 ms |');
console.log('|---|---:|---:|---:|---:|---:|');
await measure('free GET', 'GET', '/free', 200, () => ({}));
await measure('402', 'GET', '/paid/x', 402, () => ({}));
await measure('paid GET, settled before the response', 'GET', '/paid/x', 200, paying);
await measure('paid POST, settled before forwarding', 'POST', '/paid/x', 200, paying);

// Free requests beside a process that is busy being paid: CPU is that of both, the latency that of the free ones alone.
const others = new AbortController();
const busy = Array.from({ length: BUSY_PAYERS }, async () => {
  while (!others.signal.aborted) await send('GET', '/paid/x', paying());
});
await measure(`free GET while ${BUSY_PAYERS} others pay without a pause`, 'GET', '/free', 200, () => ({}));
others.abort();
await Promise.all(busy);

agent.destroy();
await served.kill();
for (const server of [upstream, facilitator]) {
  server.close();
  server.closeAllConnections();
}
files.remove();
process.exit(process.exitCode);
