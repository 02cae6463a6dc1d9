import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { COMPILE_CACHE } from './support/compile-cache.ts';
import { SlowestFirst } from './support/slowest-first.ts';
import { sortTests } from './support/unit-tests.ts';

const unit = [...sortTests().unit];
/** Where it is set the files of a run come in an order of its own: this finds tests that depend on what ran before them. */
const seed = process.env['TOLLGATE_SHUFFLE'];

// Processes instead of threads: tests start real servers and real child processes.
export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    setupFiles: ['test/support/once.ts', 'test/support/watch-canaries.ts'],
    env: COMPILE_CACHE,
    pool: 'forks',
    // Two more than there are cores, where vitest itself would take one less: much of the time is waiting for time-outs and for
    // processes to start.
    maxWorkers: availableParallelism() + 2,
    sequence: seed === undefined ? { sequencer: SlowestFirst } : { shuffle: { files: true }, seed: Number(seed) },
    // Processes start as fast as a busy machine lets them: a test that hangs is told apart from one that waits.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    // A terminal sees the run go by; elsewhere a line a file and the failures are what is read.
    reporters: process.env['CI'] || !process.stdout.isTTY ? ['default'] : ['dot'],
    projects: [
      // Loading what a test imports costs more than most unit tests: they share processes, and what these have loaded.
      {
        extends: true,
        test: { name: 'units', include: unit, isolate: false, setupFiles: ['test/support/no-process.ts'] },
      },
      // A process for each file.
      {
        extends: true,
        test: { name: 'whole', include: ['test/**/*.test.ts'], exclude: [...configDefaults.exclude, ...unit] },
      },
    ],
  },
});
