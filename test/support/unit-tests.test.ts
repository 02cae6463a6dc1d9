// What `npm run test:unit` runs.
import { describe, expect, test } from 'vitest';
import { sortTests } from './unit-tests.ts';

const { unit, others } = sortTests();

describe('the rule for unit tests', () => {
  test.each(['test/domain/decide.test.ts', 'test/config/refusals.test.ts', 'test/gateway/pay/pay.test.ts'])(
    'behaviour: %s is a unit test',
    (file) => {
      expect(unit).toContain(file);
      expect(others).not.toContain(file);
    },
  );

  test.each([
    ['test/gateway/server.test.ts', 'imports node:child_process itself'],
    ['test/gateway/rails/svm/look.test.ts', 'has a chain'],
    ['test/registry/resume.test.ts', 'has a PostgreSQL'],
    ['test/page/pay.test.ts', 'has a browser'],
    ['test/registry/desk/page.test.ts', 'has the bundler of the desk'],
    ['test/registry/disk.test.ts', 'wants a process for itself'],
    ['test/cli/serve.test.ts', 'starts a process through a file that it imports'],
  ])('refuses: %s as a unit test, because it %s', (file) => {
    expect(others).toContain(file);
    expect(unit).not.toContain(file);
  });

  test('behaviour: most tests of the parts of src are unit tests', () => {
    expect(unit.length).toBeGreaterThan(2 * others.length);
  });
});
