import { defineConfig } from 'vitest/config';

// One project, processes instead of threads: tests start real servers and real child processes.
export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/watch-canaries.ts'],
    pool: 'forks',
    testTimeout: 20_000,
    hookTimeout: 30_000,
    reporters: process.env['CI'] ? ['default'] : ['dot'],
  },
});
