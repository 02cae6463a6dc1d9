// Lock files: what is installed is what was locked, byte for byte. A package that only another platform's development tools
// need may be listed without `integrity`, because the registry that made the file does not serve it; nothing else may.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { ROOT } from './support.ts';

const lockFile = z.object({
  packages: z.record(
    z.string(),
    z.object({
      integrity: z.string().optional(),
      link: z.boolean().optional(),
      dev: z.boolean().optional(),
      optional: z.boolean().optional(),
      os: z.array(z.string()).optional(),
      cpu: z.array(z.string()).optional(),
      libc: z.array(z.string()).optional(),
    }),
  ),
});

const FILES = [
  'package-lock.json',
  'test/lab/bypass/frameworks/package-lock.json',
  'test/lab/helm/package-lock.json',
  'test/lab/interop/package-lock.json',
  'test/lab/node24/package-lock.json',
  'bench/peers/middleware/package-lock.json',
];

test.each(FILES)('behaviour: %s has the integrity of all that is installed here and runs', (name) => {
  const { packages } = lockFile.parse(JSON.parse(readFileSync(path.join(ROOT, name), 'utf8')));
  // A folder of this repository is not fetched.
  const without = Object.entries(packages).filter(
    ([place, { integrity, link }]) =>
      place.includes('node_modules/') && link !== true && integrity?.startsWith('sha512-') !== true,
  );
  const elsewhere = without.filter(([, { dev, optional, os, cpu, libc }]) => {
    const here = (os?.includes('linux') ?? true) && (cpu?.includes('x64') ?? true) && (libc?.includes('glibc') ?? true);
    return dev === true && optional === true && !here;
  });
  expect(without).toEqual(elsewhere);
});
