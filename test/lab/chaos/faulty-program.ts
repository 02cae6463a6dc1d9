// The program as main.ts runs it, with the fault in its source that TOLLGATE_TEST_FAULT names.
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { FAULTS } from './faults.ts';

const SOURCE = path.resolve(import.meta.dirname, '../../../src');
const fault = FAULTS[process.env['TOLLGATE_TEST_FAULT'] ?? ''];
if (fault === undefined) throw new Error(`TOLLGATE_TEST_FAULT is none of: ${Object.keys(FAULTS).join(', ')}`);

registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context);
    const changes = fault.filter(
      ({ file }) => url.startsWith('file:') && fileURLToPath(url) === path.join(SOURCE, file),
    );
    if (changes.length === 0) return loaded;
    let source = readFileSync(fileURLToPath(url), 'utf8');
    for (const { text, by } of changes) source = source.replace(text, () => by);
    return { ...loaded, source };
  },
});
await import('../../../src/main.ts');
