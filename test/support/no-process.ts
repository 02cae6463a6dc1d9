// Unit tests start no process: whatever would start one says so instead, in a test and in what it tests.
import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

for (const name of ['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork'] as const) {
  const refuse = (): never => {
    throw new Error(`a unit test starts no process, and here is ${name}(): see test/support/unit-tests.ts`);
  };
  Object.assign(childProcess, { [name]: refuse });
}
syncBuiltinESMExports();
