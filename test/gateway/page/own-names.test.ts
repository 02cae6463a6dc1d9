// The build shortens members of the page's own objects. No such name may be one that browsers or JavaScript have: a call of
// theirs would be shortened with it, and fail in a browser alone.
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { OWN_NAMES } from '../../../src/bundle-page.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
/** A member in a declaration: its name at the beginning of a line. */
const MEMBER = /^\s+(?:readonly |get |set )*(\w+)\??[(:<]/gm;

function membersOf(files: readonly string[]): ReadonlySet<string> {
  return new Set(
    files.flatMap((file) => [...readFileSync(file, 'utf8').matchAll(MEMBER)].map(([, name = '']) => name)),
  );
}

test('refuses: to shorten a name that a browser has, or that a page reads from JSON or keeps in its tab', () => {
  const libraries = globSync(`${ROOT}/node_modules/@typescript/*/lib/lib.{dom,es5,es20*}*.d.ts`);
  const browser = membersOf(libraries);
  expect(browser.size).toBeGreaterThan(5000);
  const wire = membersOf(['domain/payment/page-data.ts', 'page/kept.ts'].map((file) => path.join(ROOT, 'src', file)));
  expect(wire).toContain('chainName');
  const own = OWN_NAMES.source.slice(4, -2).split('|');
  expect(own).toContain('headline');
  expect(own.filter((name) => browser.has(name) || wire.has(name))).toEqual([]);
});
