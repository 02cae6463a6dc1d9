// `npm run test:interop`: the indexes and clients of the field as they are, against a running Tollgate. @agentcash/discovery
// 1.7 and mppx 0.11 find what is sold and have nothing to say against it but the favicon, which is the upstream's; mppx pays.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { generatePrivateKey } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPayer } from '../../support/chain/payer.ts';
import { startPaidTollgate, until, type PaidTollgate } from '../../support/paid-tollgate.ts';
import { temporaryFolder } from '../../support/process.ts';

const FOLDER = import.meta.dirname;
const run = promisify(execFile);

type Issue = { readonly code: string; readonly severity: string; readonly message: string };
type Checked = { readonly label: string; readonly severity: string; readonly detail?: string };

function document(version: string): string {
  const nullable = version.startsWith('3.0') ? 'type: string, nullable: true' : 'type: [string, "null"]';
  return `openapi: ${version}
info: { title: Weather, version: 2.0.0 }
paths:
  /report: { get: { summary: The report, responses: { "200": { description: OK, content: { application/json: { schema: { $ref: "#/components/schemas/Report" } } } } } } }
  /weather/{city}:
    parameters: [{ name: city, in: path, required: true, schema: { type: string }, example: oslo }]
    get:
      summary: The weather of a city
      parameters: [{ name: days, in: query, schema: { type: integer } }]
      responses: { "200": { description: OK, content: { application/json: { schema: { $ref: "#/components/schemas/Report" }, example: { title: sunny } } } } }
  /orders:
    post:
      summary: An order
      requestBody: { $ref: "#/components/requestBodies/Order" }
      responses: { "201": { description: Made, content: { application/json: { schema: { type: object } } } } }
  /free: { get: { responses: { "200": { description: Free } } } }
components:
  requestBodies: { Order: { content: { application/json: { schema: { type: object, properties: { count: { type: integer } } }, example: { count: 1 } } } } }
  schemas: { Report: { type: object, properties: { title: { ${nullable} } } } }
`;
}

const ROUTES = ['GET /report 0.05', 'GET /weather/:city 0.10', 'POST /orders 0.20', '* /any/:id 0.01'];

async function start(version: string | undefined): Promise<PaidTollgate & { readonly end: () => Promise<void> }> {
  const files = temporaryFolder();
  const openapi = version === undefined ? '' : `openapi: "${files.write('openapi.yaml', document(version))}", `;
  const paid = await startPaidTollgate({
    routes: ROUTES,
    more: `discovery: { ${openapi}service_name: Example Weather, contact: owner@example.com }`,
  });
  await until('what is sold is told', async () => (await fetch(paid.url('/openapi.json'))).status === 200);
  return {
    ...paid,
    end: async () => {
      await paid.stop();
      files.remove();
    },
  };
}

async function program(name: string, ...args: string[]): Promise<unknown> {
  const file = path.join(FOLDER, 'node_modules/.bin', name);
  const { stdout } = await run(file, args, { maxBuffer: 16_000_000 }).catch((error: unknown) => {
    // mppx ends with 1 where nothing speaks MPP.
    if (typeof error === 'object' && error !== null && 'stdout' in error) return { stdout: String(error.stdout) };
    throw error;
  });
  return JSON.parse(stdout);
}

/** Without the favicon, which is the upstream's. */
const complaints = (issues: readonly Issue[]): readonly string[] =>
  issues
    .filter(({ code }) => code !== 'FAVICON_MISSING')
    .map(({ code, severity, message }) => `${severity} ${code}: ${message}`);

describe.each([['3.0.3'], ['3.1.0'], [undefined]])('with a document of OpenAPI %s', (version) => {
  let paid: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    if (!existsSync(path.join(FOLDER, 'node_modules/mppx')))
      throw new Error('run it by `npm run test:interop`, which installs the clients first');
    paid = await start(version);
  }, 60_000);
  afterAll(() => paid?.end());

  test('behaviour: @agentcash/discovery finds all that is sold, and complains of nothing but the favicon', async () => {
    const found = (await program('discovery', 'discover', paid.url(''), '--json')) as {
      readonly ok: boolean;
      readonly resources: readonly { readonly method: string; readonly path: string; readonly priceHint?: string }[];
      readonly warnings: readonly Issue[];
    };
    expect(found.ok).toBe(true);
    expect(found.resources.map((each) => `${each.method} ${each.path} ${each.priceHint}`).toSorted()).toEqual([
      'GET /any/{id} 0.01 USD',
      'GET /report 0.05 USD',
      'GET /weather/{city} 0.10 USD',
      'POST /any/{id} 0.01 USD',
      'POST /orders 0.20 USD',
    ]);
    expect(complaints(found.warnings)).toEqual([]);
  });

  test.each(['/report', '/weather/oslo', '/orders', '/any/1'])(
    'behaviour: @agentcash/discovery checks %s and complains of nothing',
    async (target) => {
      const checked = (await program('discovery', 'check', paid.url(target), '--json')) as {
        readonly found: boolean;
        readonly warnings: readonly Issue[];
      };
      expect([checked.found, complaints(checked.warnings)]).toEqual([true, []]);
    },
  );

  test('behaviour: mppx validates the documents and finds an x402 challenge on each operation', async () => {
    const judged = (await program('mppx', 'validate', paid.url(''), '--output-json')) as {
      readonly discovery: { readonly found: boolean; readonly checks: readonly Checked[] };
      readonly endpoints: readonly {
        readonly method: string;
        readonly path: string;
        readonly challenge: readonly Checked[];
      }[];
      readonly summary: Readonly<Record<string, number>>;
    };
    const challenges = judged.endpoints.map(({ challenge }) => challenge);
    expect(judged.discovery.found).toBe(true);
    expect(challenges).toHaveLength(5);
    for (const results of [judged.discovery.checks, ...challenges])
      expect(results.filter(({ severity }) => severity !== 'pass' && severity !== 'skip')).toEqual([]);
    for (const results of challenges)
      expect(results).toContainEqual(expect.objectContaining({ label: 'x402 payment challenge', severity: 'pass' }));
    expect(judged.summary).toMatchObject({ failed: 0, warnings: 0 });
  });

  test('behaviour: mppx as it is pays for a request and reads the receipt', async () => {
    const key = generatePrivateKey();
    await createPayer(paid.chain, 1_000_000n, key);
    const before = await paid.earned();
    const { stdout } = await run(process.execPath, [path.join(FOLDER, 'pay-mppx.mjs'), paid.url('/report'), key]);
    const { status, receipt, body } = JSON.parse(stdout) as {
      status: number;
      receipt: Record<string, unknown>;
      body: string;
    };
    expect([status, receipt['success'], receipt['network']]).toEqual([200, true, 'eip155:84532']);
    expect(JSON.parse(body)).toMatchObject({ upstream: true });
    expect((await paid.earned()) - before).toBe(50_000n);
  });
});
