// `npm run test:unit`: the part of `npm test` that needs no process, no chain, no database server and no browser.
import { mergeConfig } from 'vitest/config';
import { sortTests } from './support/unit-tests.ts';
import whole from './vitest.config.ts';

const base = { ...whole, test: { ...whole.test, include: [...sortTests().unit] } };

export default mergeConfig(base, { test: { setupFiles: ['test/support/no-process.ts'], isolate: false } });
