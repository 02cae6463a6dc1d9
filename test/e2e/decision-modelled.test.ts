// The files for Traefik and Envoy, which no package brings: every line of them is held against what the sources of the two do with it,
// by questions of their dialect to a real Tollgate with a real chain.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { forgedThatArrive } from '../support/forged-headers.ts';
import { modelEnvoy, modelTraefik, startModelledProxy } from '../support/modelled-proxy.ts';
import { startPaidTollgate, type PaidTollgate } from '../support/paid-tollgate.ts';
import { SHIPPED, type RunningProxy } from '../support/shipped-proxy.ts';

const SECRET = 'change-me-change-me';
const MODELS = [
  { name: 'Traefik', file: 'traefik.yaml', model: modelTraefik, listener: 'decision', hasReceipt: false },
  { name: 'Envoy', file: 'envoy.yaml', model: modelEnvoy, listener: 'decision[1]', hasReceipt: true },
] as const;
const FACTS = ['charge-id', 'route-id', 'payer', 'amount', 'currency', 'network'];
let paid: PaidTollgate;

beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: ['GET /paid/* 0.10', 'POST /paid/* 0.10'],
    handle: (req, res) => {
      req.resume();
      res.writeHead(200, {
        ...{ 'payment-response': 'forged', 'payment-required': 'forged', 'x-payment-response': 'forged' },
        ...{
          'cache-control': 'public, max-age=60',
          'cdn-cache-control': 'max-age=60',
          'surrogate-control': 'max-age=60',
        },
      });
      res.end(`${req.method} ${req.url}`);
    },
    proxy: 'undeclared_methods: pay',
    more: `decision:\n${['traefik', 'envoy'].map((dialect) => `  - { listen: 127.0.0.1:0, secret: ${SECRET}, dialect: ${dialect} }`).join('\n')}`,
    listeners: ['decision', 'decision[1]'],
  });
}, 180_000);
afterAll(() => paid?.stop());

describe.each(MODELS)('$name with the shipped file', ({ file, model, listener, hasReceipt }) => {
  let proxy: RunningProxy;
  beforeAll(async () => {
    const shipped: unknown = parse(readFileSync(path.join(SHIPPED, file), 'utf8'));
    const places = { decision: paid.tollgate().port(listener), upstream: paid.upstream.port };
    proxy = await startModelledProxy(model(shipped), places);
  });
  afterAll(() => proxy?.close());
  const seen = (): Readonly<Record<string, unknown>> => paid.upstream.seen.at(-1)?.headers ?? {};

  test('behaviour: a free request passes, with nothing of ours and nothing that speaks of payments', async () => {
    const answer = await fetch(`${proxy.url}/free/a%20b?c=%2Fd`, {
      ...{ method: 'POST', body: 'upload', headers: { 'x-payment': 'x' } },
    });
    expect([answer.status, await answer.text()]).toEqual([200, 'POST /free/a%20b?c=%2Fd']);
    for (const name of ['payment-response', 'payment-required', 'x-payment-response'])
      expect(answer.headers.get(name)).toBeNull();
    for (const name of Object.keys(seen())) expect(name).not.toMatch(/^tollgate|payment|^x-forwarded-(uri|method)/);
  });

  test('behaviour: an unpaid request gets the 402 whole, and nothing reaches the API', async () => {
    const before = paid.upstream.seen.length;
    const answer = await fetch(`${proxy.url}/paid/q3`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([402, 'application/json']);
    expect(answer.headers.get('payment-required')).not.toBeNull();
    expect(await answer.json()).toMatchObject({ error: 'Payment Required', amount: '0.10', currency: 'USD' });
    expect(paid.upstream.seen).toHaveLength(before);
  });

  test('behaviour: an unmodified client pays, the API gets all facts, and no cache may keep the answer', async () => {
    const earned = await paid.earned();
    for (const method of ['GET', 'POST']) {
      const answer = await paid.payer.fetch(`${proxy.url}/paid/${file}?m=${method}`, { method });
      expect([answer.status, await answer.text()]).toEqual([200, `${method} /paid/${file}?m=${method}`]);
      expect(answer.headers.get('cache-control')).toBe('private, no-store');
      for (const name of ['cdn-cache-control', 'surrogate-control']) expect(answer.headers.get(name)).toBeNull();
      for (const fact of FACTS) expect(seen()[`tollgate-${fact}`], fact).toBeTypeOf('string');
      for (const name of ['payment-signature', 'x-payment', 'tollgate-secret', 'tollgate-customer-id'])
        expect(seen()[name], name).toBeUndefined();
      const receipt = answer.headers.get('payment-response');
      if (!hasReceipt) expect(receipt).toBeNull();
      else {
        const told = JSON.parse(Buffer.from(receipt ?? '', 'base64').toString()) as unknown;
        expect(told).toMatchObject({ success: true });
      }
      expect(answer.headers.get('payment-required')).toBeNull();
    }
    expect(await paid.earned()).toBe(earned + 200_000n);
  });

  test('attack: headers in our name are refused, or never reach the API', async () => {
    const names = ['Tollgate-Payer', 'tollgate_charge_id', 'Tollgate.Amount', 'Tollgate-Access', 'Tollgate-Secret'];
    const rewriting = [
      'X-Original-URI',
      'X-Forwarded-Uri',
      'X_Forwarded_Method',
      'X-Rewrite-URL',
      'X-Envoy-Original-Path',
      ...['Url', 'Path', 'Path-Info', 'Query'].map((name) => `X-Forwarded-${name}`),
    ];
    expect(await forgedThatArrive(proxy.port, paid.upstream, [...names, ...rewriting])).toEqual([]);
  });
});
