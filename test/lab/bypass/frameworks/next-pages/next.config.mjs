import path from 'node:path';

const frameworks = path.resolve(import.meta.dirname, '..');

/** The build id is that of the suite's cases: a client reads it from any page. */
export default {
  turbopack: { root: frameworks },
  outputFileTracingRoot: frameworks,
  generateBuildId: () => 'aB3',
};
