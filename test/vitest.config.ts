import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { COMPILE_CACHE } from './support/compile-cache.ts';
import { SlowestFirst } from './support/slowest-first.ts';

// One project, processes instead of threads: tests start real servers and real child processes.
export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/no-network.ts', 'test/support/patience.ts', 'test/support/watch-canaries.ts'],
    env: COMPILE_CACHE,
    pool: 'forks',
    // Two more than there are cores, where vitest itself would take one less: much of the time is waiting for time-outs and for
    // processes to start.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: SlowestFirst },
    // Processes start as fast as a busy machine lets them: a test that hangs is told apart from one that waits.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    // A terminal sees the run go by; elsewhere a line a file and the failures are what is read.
    reporters: process.env['CI'] || !process.stdout.isTTY ? ['default'] : ['dot'],
  },
});
