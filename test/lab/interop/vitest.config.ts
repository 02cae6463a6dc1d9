import { defineConfig } from 'vitest/config';

// Apart from the default suite: what is tried here is installed on demand.
export default defineConfig({
  test: {
    root: new URL('../../..', import.meta.url).pathname,
    include: ['test/lab/interop/*.suite.ts'],
    pool: 'forks',
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
