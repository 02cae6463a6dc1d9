import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { SlowestFirst } from './support/slowest-first.ts';

// One project, processes instead of threads: tests start real servers and real child processes.
export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/watch-canaries.ts'],
    pool: 'forks',
    // Two at least, where vitest itself would take one less than there are cores: half of the time is waiting for
    // time-outs and for processes to start.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    sequence: { sequencer: SlowestFirst },
    testTimeout: 20_000,
    hookTimeout: 30_000,
    reporters: process.env['CI'] ? ['default'] : ['dot'],
  },
});
