// No test reaches another machine, whatever its configuration names.
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { NO_NETWORK } from './no-network.ts';

const TRY = `await fetch('https://mainnet.base.org').catch((error) => process.stdout.write(String(error.cause?.code)))`;

test('refuses: to reach a name of another machine, here and in a started process', async () => {
  const failed = await fetch('https://mainnet.base.org').catch((error: unknown) => error);
  expect(failed).toMatchObject({ cause: { code: 'ENOTFOUND' } });
  const { stdout } = spawnSync(process.execPath, [...NO_NETWORK, '--input-type=module', '-e', TRY], {
    encoding: 'utf8',
  });
  expect(stdout).toBe('ENOTFOUND');
});
