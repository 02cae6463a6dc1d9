// What is told of paid routes to those who list APIs: in the 402, and to a facilitator of the test's own, which sees our
// copy at verify and settle whatever a client gives back. The reference judges what it would list.
import { renameSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { assertReference, type Bazaar } from '../domain/discovery/kit.ts';
import { json, startScripted, type Scripted } from '../gateway/rails/kit.ts';
import { makeUpPayment } from '../support/made-up-payment.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const RESPONSES = { bazaar: { status: 'processing' } };
const OPENAPI = `openapi: 3.0.3
servers: [{ url: "https://api.example.com/v1" }]
paths:
  /weather/{city}:
    get:
      parameters:
        - { name: city, in: path, required: true, schema: { type: string }, example: oslo }
        - { name: days, in: query, schema: { type: integer, exclusiveMinimum: true, minimum: 0 }, example: 3 }
      responses:
        "200": { content: { application/json: { schema: { $ref: "#/components/schemas/Forecast" }, example: { celsius: 11.5, wind: null } } } }
  /outside: { get: { responses: { "200": { content: { application/json: { schema: { $ref: "other.yaml" } } } } } } }
components:
  schemas:
    Forecast: { type: object, required: [celsius], properties: { celsius: { type: number }, wind: { type: string, nullable: true } } }
`;

type Entry = { readonly extra: object; readonly payTo: string; readonly amount: string };
type Required = { readonly accepts: [Entry]; readonly extensions?: { readonly bazaar: Bazaar } };
type Told = {
  readonly paymentPayload: {
    readonly accepted: Entry;
    readonly resource?: object;
    readonly extensions?: { readonly bazaar: Bazaar };
  };
  readonly paymentRequirements: Entry;
};

const files = temporaryFolder();
let upstream: Upstream;
let facilitator: Scripted;
let tollgate: TollgateProcess;
/** The next settlement gets no answer. */
let losesNext = false;

/** In the place of the file at once, so that nobody reads a half. */
function put(name: string, text: string): string {
  const file = files.write(`${name}~`, text);
  renameSync(file, path.join(files.folder, name));
  return path.join(files.folder, name);
}

function configuration(discovery: string): string {
  return [
    `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url}, public_url: https://api.example.com }`,
    'registry: { listen: 127.0.0.1:0, store: sqlite:data/tollgate.db }',
    'admin: { listen: 127.0.0.1:0 }',
    `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x${'1'.repeat(40)}", facilitators: [${facilitator.url}] }]`,
    'routes:',
    '  - { method: GET, route_pattern: "/v1/weather/{city}", amount: "0.10", description: "The weather of a place" }',
    '  - { route_pattern: "/internal/*", amount: "0.10" }',
    '  - { method: GET, route_pattern: "/plain", amount: "0.10" }',
    '  - { method: GET, route_pattern: "/free", amount: "0.10", status: paused }',
    discovery,
  ].join('\n');
}

const DISCOVERY =
  'discovery: { openapi: openapi.yaml, service_name: Example Weather, tags: [weather, europe], icon_url: "https://example.com/icon.png", exclude: ["/internal/*"] }';

beforeAll(async () => {
  upstream = await startUpstream();
  facilitator = await startScripted((req, res) => {
    res.setHeader('EXTENSION-RESPONSES', Buffer.from(JSON.stringify(RESPONSES)).toString('base64'));
    if (req.url === '/verify') return json(res, { isValid: true });
    if (req.url === '/settle' && losesNext) {
      losesNext = false;
      return void req.socket.destroy();
    }
    if (req.url === '/settle')
      return json(res, { success: true, transaction: `0x${'9a'.repeat(32)}`, network: 'eip155:84532' });
    return json(res, { kinds: [] });
  });
  put('openapi.yaml', OPENAPI);
  const config = put('tollgate.yaml', configuration(DISCOVERY));
  tollgate = await startProcess({ args: ['serve', '-c', config], listeners: ['proxy', 'registry', 'admin'] });
}, 60_000);
afterAll(async () => {
  await tollgate?.kill();
  await facilitator.close();
  await upstream.close();
  files.remove();
});
beforeEach(() => void facilitator.requests.splice(0));

async function demanded(target: string, init: RequestInit = {}): Promise<Required> {
  const response = await fetch(tollgate.url('proxy') + target, init);
  expect(response.status).toBe(402);
  await response.arrayBuffer();
  return JSON.parse(Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString()) as Required;
}

/** What the facilitator is told at verify and settle when a client that gives `given` back pays. */
async function paid(
  target: string,
  given: object,
  method = 'GET',
): Promise<{ readonly required: Required; readonly told: readonly Told[]; readonly response: Response }> {
  const required = await demanded(target, { method });
  const credential = JSON.parse(
    Buffer.from(makeUpPayment(required.accepts[0], Date.now()), 'base64').toString(),
  ) as object;
  const sent = Buffer.from(JSON.stringify({ ...credential, ...given })).toString('base64');
  const response = await fetch(tollgate.url('proxy') + target, { method, headers: { 'payment-signature': sent } });
  expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
  const calls = facilitator.requests.filter(({ url }) => url === '/verify' || url === '/settle');
  expect(calls.map(({ url }) => url)).toEqual(['/verify', '/settle']);
  return { required, told: calls.map(({ body }) => JSON.parse(body) as Told), response };
}

/** Resolves when what is told of WEATHER is `expected`, whichever of several reloads it came with. */
async function shows(expected: unknown): Promise<void> {
  await vi.waitFor(async () => expect((await demanded(WEATHER)).extensions?.bazaar.info).toEqual(expected), {
    timeout: 20_000,
    interval: 50,
  });
}

const WEATHER = '/v1/weather/oslo?days=2';

describe('at the start', () => {
  test('behaviour: a start says how many routes will be public, and what is wrong with the description', async () => {
    const line = await tollgate.line(({ msg }) => msg.startsWith('facilitators are told of routes'));
    expect(line).toMatchObject({ level: 'info', routes: 2, of: 3 });
    const warnings = tollgate.lines.filter(({ level, msg }) => level === 'warn' && msg.startsWith('openapi.yaml:'));
    expect(warnings.map(({ msg }) => msg)).toEqual([
      'openapi.yaml:11: refers to something outside this file, which is not read; write it into the file',
      'openapi.yaml:3: has no operation for GET /plain; its method and template alone are told',
    ]);
  });
});

describe('in the 402', () => {
  test('behaviour: a 402 has the bazaar extension, and the reference would list it', async () => {
    const { extensions } = await demanded(WEATHER);
    const bazaar = extensions?.bazaar;
    if (bazaar === undefined) throw new Error('no bazaar');
    assertReference(bazaar);
    expect(bazaar).toMatchObject({
      info: {
        input: { type: 'http', method: 'GET', queryParams: { days: 3 }, pathParams: { city: 'oslo' } },
        output: { type: 'json', example: { celsius: 11.5, wind: null } },
      },
      routeTemplate: '/v1/weather/:city',
    });
    expect(Object.keys(extensions ?? {})).toEqual(['bazaar']);
  });

  test('behaviour: a 402 of a route without an operation tells the method and the template', async () => {
    const { extensions } = await demanded('/plain');
    expect(extensions?.bazaar).toMatchObject({
      info: { input: { type: 'http', method: 'GET' } },
      routeTemplate: '/plain',
    });
  });

  test('behaviour: a 402 of a route that is excluded tells nothing', async () => {
    for (const method of ['GET', 'POST'])
      expect(await demanded('/internal/x', { method })).not.toHaveProperty('extensions');
  });
});

describe('at the facilitator', () => {
  const OURS = {
    url: 'https://api.example.com/v1/weather/oslo',
    description: 'The weather of a place',
    mimeType: 'application/json',
    serviceName: 'Example Weather',
    tags: ['weather', 'europe'],
    iconUrl: 'https://example.com/icon.png',
  };

  test.each([
    ['nothing', {}],
    ['what the 402 said', undefined],
    [
      'another resource and other extensions',
      {
        resource: { url: 'https://evil.example/', description: 'Free', serviceName: 'Evil', tags: ['evil'] },
        extensions: {
          bazaar: { info: { input: { type: 'http', method: 'POST' } }, schema: {}, routeTemplate: '/evil' },
          'builder-code': { info: { code: 'evil' } },
        },
      },
    ],
  ])('attack: a client that gives back %s changes nothing of what the facilitator is told', async (_, given) => {
    const required = await demanded(WEATHER);
    const { extensions } = required;
    const { told, response } = await paid(WEATHER, given ?? { ...required, accepts: undefined });
    for (const { paymentPayload, paymentRequirements } of told) {
      expect(paymentPayload.resource).toEqual(OURS);
      expect(paymentPayload.extensions).toEqual({ bazaar: extensions?.bazaar });
      expect(paymentPayload.accepted).toEqual(paymentRequirements);
      expect(Object.keys(paymentRequirements.extra).toSorted()).toEqual(['name', 'version']);
      expect(JSON.stringify(paymentPayload)).not.toContain('evil');
    }
    // What it says of extensions is the operator's to read.
    expect([...response.headers].join()).not.toContain('processing');
    expect(response.headers.get('extension-responses')).toBeNull();
    await expect
      .poll(() => tollgate.lines.findLast(({ msg }) => msg === 'a facilitator says what became of extensions'))
      .toMatchObject({ operation: 'settle', extensions: JSON.stringify(RESPONSES) });
  });

  test('behaviour: a settlement that is taken over tells the facilitator the same', async () => {
    const required = await demanded(WEATHER);
    const headers = { 'payment-signature': makeUpPayment(required.accepts[0], Date.now()) };
    losesNext = true;
    const first = await fetch(tollgate.url('proxy') + WEATHER, { headers });
    expect([first.status, await first.json()]).toMatchObject([503, { code: 'settlement_unknown' }]);
    const again = await fetch(tollgate.url('proxy') + WEATHER, { headers });
    expect([again.status, await again.text()]).toEqual([200, expect.any(String)]);
    const settlements = facilitator.requests
      .filter(({ url }) => url === '/settle')
      .map(({ body }) => JSON.parse(body) as Told);
    expect(settlements).toHaveLength(2);
    for (const { paymentPayload } of settlements) {
      expect(paymentPayload.resource).toEqual(OURS);
      expect(paymentPayload.extensions).toEqual(required.extensions);
    }
  });

  test('behaviour: a facilitator is told neither bazaar nor service of a route that is excluded', async () => {
    const { required, told } = await paid('/internal/x', {}, 'POST');
    // What is settled first is said to clients alone.
    expect(required.accepts[0].extra).toHaveProperty('paymentFlow', 'upfront');
    for (const { paymentPayload, paymentRequirements } of told) {
      expect(paymentPayload).not.toHaveProperty('extensions');
      expect(paymentPayload.accepted).toEqual(paymentRequirements);
      expect(Object.keys(paymentRequirements.extra).toSorted()).toEqual(['name', 'version']);
      expect(paymentPayload.resource).toEqual({
        url: 'https://api.example.com/internal/x',
        description: '* /internal/*',
        mimeType: 'application/json',
      });
    }
  });
});

describe('when files change', () => {
  const info = (days: number): object => ({
    input: { type: 'http', method: 'GET', queryParams: { days }, pathParams: { city: 'oslo' } },
    output: { type: 'json', example: { celsius: 11.5, wind: null } },
  });
  const rejections = (): readonly string[] =>
    tollgate.lines
      .map(({ msg }) => msg)
      .filter((msg) => /^openapi\.yaml:\d: is not valid YAML.*; what was read before is told$/.test(msg));

  test('behaviour: a changed description is taken on, a bad one leaves the last good one', async () => {
    put('openapi.yaml', OPENAPI.replace('example: 3 }', 'example: 7 }'));
    await shows(info(7));
    put('openapi.yaml', 'openapi: 3.0.0\npaths: {{\n');
    await vi.waitFor(() => expect(rejections()).toHaveLength(1), { timeout: 20_000, interval: 20 });
    tollgate.signal('SIGHUP');
    await vi.waitFor(() => expect(rejections()).toHaveLength(2), { timeout: 20_000, interval: 20 });
    await shows(info(7));
  });

  test('behaviour: without the discovery section nothing is told, and with an empty one methods and templates', async () => {
    put('tollgate.yaml', configuration(''));
    await shows(undefined);
    expect(await demanded(WEATHER)).not.toHaveProperty('extensions');
    const { told } = await paid(WEATHER, { extensions: { bazaar: { info: {} } } });
    for (const { paymentPayload } of told) expect(paymentPayload).not.toHaveProperty('extensions');
    put('tollgate.yaml', configuration('discovery:'));
    await shows({ input: { type: 'http', method: 'GET', pathParams: {}, queryParams: {} } });
  });
});
