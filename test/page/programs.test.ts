// The six lines that the page shows to developers, run as they stand there: they pay, over a real chain.
import { execFile } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { createPageLab } from '../support/page-lab.ts';
import { temporaryFolder } from '../support/process.ts';
import { keepSecret } from '../support/canaries.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const { paid, visit } = createPageLab({ routes: ['GET /reports/* 0.10'] });

test('behaviour: six lines of JavaScript, copied from the page, pay for what the page asks for', async () => {
  const target = `/reports/q3?a=1&b=%22c%22`;
  const { page } = await visit(target);
  await page.getByText('For programs').click();
  const lines = await page.getByRole('region', { name: 'JavaScript' }).innerText();
  expect(lines.trim().split('\n')).toHaveLength(6);
  const key = generatePrivateKey();
  keepSecret('a private key', key.slice(2));
  await paid().chain.mint(privateKeyToAccount(key).address, 1_000_000n);
  const { folder, write, remove } = temporaryFolder();
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  const file = write('pay.mjs', `${lines}\nconsole.log(answer.status, await answer.text());\n`);
  const before = await paid().earned();
  const { stdout } = await promisify(execFile)(process.execPath, [file], { env: { ...process.env, PRIVATE_KEY: key } });
  remove();
  expect(stdout).toBe(`200 ${JSON.stringify({ upstream: true, method: 'GET', url: target })}\n`);
  expect(await paid().earned()).toBe(before + 100_000n);
});
