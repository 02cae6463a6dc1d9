// Who gets the page for people from the real program, and that everybody else gets the JSON to the letter.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { headerOf, openRaw, type RawAnswer } from '../support/raw-client.ts';

const files = temporaryFolder();
const BROWSER =
  'Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\nUser-Agent: Mozilla/5.0\r\n';
let shown: TollgateProcess;
let hidden: TollgateProcess;

beforeAll(async () => {
  const start = (name: string, page: string): Promise<TollgateProcess> =>
    startProcess({
      args: [
        'serve',
        '-c',
        files.write(
          `${name}.yaml`,
          [
            'proxy: { listen: 127.0.0.1:0, upstream: "http://127.0.0.1:1", cors_origins: ["https://app.example"] }',
            `registry: { listen: 127.0.0.1:0, store: sqlite:${name}/tollgate.db }`,
            'admin: { listen: 127.0.0.1:0 }',
            `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x${'1'.repeat(40)}", facilitators: [http://127.0.0.1:1] }]`,
            'routes: [{ route_pattern: "/paid/*", method: "*", amount: "0.10", description: "A report" }]',
            page,
          ].join('\n'),
        ),
      ],
    });
  [shown, hidden] = await Promise.all([
    start('shown', 'page: { name: Example }'),
    start('hidden', 'page: { enabled: false }'),
  ]);
});
afterAll(async () => {
  await Promise.all([shown.kill(), hidden.kill()]);
  files.remove();
});

async function ask(tollgate: TollgateProcess, headers: string, line = 'GET /paid/a?q=1'): Promise<RawAnswer> {
  const client = await openRaw(tollgate.port('proxy'));
  try {
    client.send(`${line} HTTP/1.1\r\nHost: api.example\r\n${headers}\r\n`);
    return await client.answer(line.startsWith('HEAD'));
  } finally {
    client.close();
  }
}

const contentType = (answer: RawAnswer): string | undefined => headerOf(answer, 'content-type');

/** Head and body, but for what each answer draws anew. */
function shapeOf({ status, headers, body }: RawAnswer): unknown {
  const same = headers.map(([name, value]) => {
    if (name === 'PAYMENT-REQUIRED') return [name, withoutIds(Buffer.from(value, 'base64').toString())];
    return /^(?:date|x-request-id)$/i.test(name) ? [name] : [name, value];
  });
  return { status, same, body: withoutIds(body.toString()) };
}

const withoutIds = (text: string): string => text.replace(/chg_[A-Za-z0-9_-]+/g, 'chg_');

test('behaviour: a browser gets the page, with the header that programs read', async () => {
  const answer = await ask(shown, BROWSER);
  expect(answer.status).toBe(402);
  expect(contentType(answer)).toBe('text/html; charset=utf-8');
  expect(headerOf(answer, 'cache-control')).toBe('no-store');
  expect(headerOf(answer, 'vary')).toBeUndefined();
  expect(headerOf(answer, 'tollgate-reason')).toBe('payment_required');
  const text = answer.body.toString();
  expect(text).toContain('<title>0.10 USD - Example</title>');
  expect(text).toContain('GET /paid/a</code>');
  const [, data = ''] = /id="data">(.*?)<\/script>/.exec(text) ?? [];
  const required = Buffer.from(headerOf(answer, 'payment-required') ?? '', 'base64').toString();
  const { accepts } = JSON.parse(required) as { readonly accepts: readonly Record<string, unknown>[] };
  const { ways } = JSON.parse(data) as { readonly ways: readonly Record<string, unknown>[] };
  const shownOf = ({ network, asset, payTo, amount }: Record<string, unknown>): unknown => [
    network,
    asset,
    payTo,
    amount,
  ];
  expect(ways.map(shownOf)).toEqual(accepts.map(shownOf));
});

describe('everybody else gets the JSON to the letter', () => {
  const EXACT =
    '{"error":"Payment Required","charge_id":"chg_","amount":"0.10","currency":"USD","description":"A report","x402_requirements":{"rail_config":{"scheme":"exact","network":"base-sepolia","asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","pay_to_address":"0x1111111111111111111111111111111111111111","max_timeout_seconds":300},"amount":"0.10","currency":"USD","external_ref":"chg_"}}';
  test.each([
    ['curl', 'Accept: */*\r\nUser-Agent: curl/8.5.0\r\n', 'GET /paid/a'],
    ['no header at all', '', 'GET /paid/a'],
    [
      'a script in a page',
      'Accept: */*\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\nOrigin: https://app.example\r\n',
      'GET /paid/a',
    ],
    ['a form', BROWSER, 'POST /paid/a'],
    ['HEAD', BROWSER, 'HEAD /paid/a'],
    ['a payment of a version that is off', `${BROWSER}X-PAYMENT: e30=\r\n`, 'GET /paid/a'],
  ])('behaviour: %s gets the JSON to the letter, not the page', async (_name, headers, line) => {
    const answer = await ask(shown, headers, line);
    expect(shapeOf(answer)).toEqual(shapeOf(await ask(hidden, headers, line)));
    expect(contentType(answer)).toBe('application/json');
    if (!line.startsWith('HEAD')) expect(withoutIds(answer.body.toString())).toBe(EXACT);
  });

  test('behaviour: browsers get the JSON to the letter if the page is off', async () => {
    const answer = await ask(hidden, BROWSER);
    expect(contentType(answer)).toBe('application/json');
    expect(withoutIds(answer.body.toString())).toBe(EXACT);
  });

  test('behaviour: a problem stays a problem for a browser', async () => {
    const answer = await ask(shown, `${BROWSER}PAYMENT-SIGNATURE: x\r\n`);
    expect([answer.status, contentType(answer)]).toEqual([400, 'application/problem+json']);
  });
});
