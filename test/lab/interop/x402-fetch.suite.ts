// `npm run test:interop`: x402-fetch 1.2.0 from its own folder against Tollgate, a real facilitator and a real chain.
import { execFile } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { generatePrivateKey } from 'viem/accounts';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { findBlock, readBlocks } from '../../docs/blocks.ts';
import { createPayer } from '../../support/chain/payer.ts';
import { startPaidTollgate, type PaidTollgate } from '../../support/paid-tollgate.ts';

const FOLDER = import.meta.dirname;
let paid: PaidTollgate;

beforeAll(async () => {
  if (!existsSync(path.join(FOLDER, 'node_modules/x402-fetch')))
    throw new Error('run it by `npm run test:interop`, which installs the client first');
  paid = await startPaidTollgate({ routes: ['GET /report 0.05'] });
}, 60_000);
afterAll(() => paid?.stop());

test('behaviour: x402-fetch 1.2.0 as it is pays for a request and reads the receipt', async () => {
  const key = generatePrivateKey();
  await createPayer(paid.chain, 1_000_000n, key);
  const { stdout } = await promisify(execFile)(process.execPath, [
    path.join(FOLDER, 'pay.mjs'),
    paid.url('/report'),
    key,
  ]);
  const { status, receipt, body } = JSON.parse(stdout) as {
    status: number;
    receipt: Record<string, unknown>;
    body: string;
  };
  expect([status, receipt['success'], receipt['network']]).toEqual([200, true, 'base-sepolia']);
  expect(JSON.parse(body)).toMatchObject({ upstream: true });
  expect(await paid.earned()).toBe(50_000n);
});

test('behaviour: the program for version 1 in docs/paying.md pays as it stands', async () => {
  const key = generatePrivateKey();
  await createPayer(paid.chain, 1_000_000n, key);
  const before = await paid.earned();
  const file = path.join(FOLDER, 'pay-v1.mjs');
  writeFileSync(file, findBlock(readBlocks('docs/paying.md'), 'pay-v1.mjs').text);
  onTestFinished(() => rmSync(file));
  const env = { ...process.env, URL: paid.url('/report'), PRIVATE_KEY: key };
  const { stdout } = await promisify(execFile)(process.execPath, [file], { env });
  expect(stdout).toMatch(/^200 \{"upstream":true.*\n\{\s+success: true/);
  expect((await paid.earned()) - before).toBe(50_000n);
});
