// How much of src one request passes: more of it is more to know for who follows a request.
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const LIMITS = new Map([
  ['free GET', 20],
  ['paid POST', 45],
]);

test('behaviour: a free GET passes 20 files at most, a paid POST 45', async () => {
  const main = path.join(import.meta.dirname, 'main.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [main, '--json']);
  const journeys = JSON.parse(stdout) as readonly { name: string; files: number; passed: Record<string, unknown> }[];
  expect(journeys.map(({ name }) => name)).toEqual([...LIMITS.keys()]);
  for (const { name, files, passed } of journeys)
    expect(files, Object.keys(passed).join('\n')).toBeLessThanOrEqual(LIMITS.get(name) ?? 0);
});
