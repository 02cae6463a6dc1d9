// What the tests of the deployment files share: the files as data, the Dockerfile's instructions, and a configuration as
// a container would load it, with what is mounted beside it. Values in place of what people have to fill in are here too.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { readConfig, type LoadResult } from '../../src/config/load.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';

export const ROOT = path.resolve(import.meta.dirname, '../..');
export const NODE = path.join(ROOT, 'node_modules/.bin/node');

/** The packages that the program is made of beside its own source; others come with these. */
export const BUNDLED = [
  '@fontsource-variable/geist',
  '@fontsource-variable/geist-mono',
  '@preact/signals',
  'http-proxy-3',
  'jose',
  'ky',
  'lru-cache',
  'path-to-regexp',
  'preact',
  'prom-client',
  'yaml',
  'zod',
] as const;

/** What a user fills in. */
export const VALUES = {
  PAY_TO: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C',
  TOLLGATE_API_KEY: 'key-of-sixteen-characters',
  TOLLGATE_JWT_SECRET: 'jwt-secret-jwt-secret-jwt-secret-1234',
  TOLLGATE_CHARGE_SECRET: 'charge-secret-charge-secret-charge-12',
  POSTGRES_PASSWORD: 'the-password-of-the-database',
} as const;

export function readText(file: string): string {
  return readFileSync(path.join(ROOT, file), 'utf8');
}

/** The documents of a YAML file; throws where one has an error or a warning. */
export function readYaml(file: string): unknown[] {
  return parseAllDocuments(readText(file), { merge: true }).map((document) => {
    const [wrong] = [...document.errors, ...document.warnings];
    if (wrong) throw new Error(`${file}: ${wrong.message}`);
    return document.toJS() as unknown;
  });
}

export const packageFile = z
  .looseObject({
    version: z.string(),
    description: z.string(),
    license: z.string(),
    bin: z.record(z.string(), z.string()),
    files: z.array(z.string()),
    engines: z.object({ node: z.string() }),
    dependencies: z.record(z.string(), z.string()).optional(),
    devDependencies: z.record(z.string(), z.string()),
  })
  .parse(JSON.parse(readText('package.json')));

export type Instruction = { readonly name: string; readonly value: string };

/** The instructions of the Dockerfile in order, continuation lines joined, comments gone. */
export function readDockerfile(): Instruction[] {
  const lines = readText('Dockerfile')
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
    .replace(/\\\n\s*/g, ' ')
    .split('\n');
  return lines.flatMap((line) => {
    const [, name, value] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [{ name, value }];
  });
}

/** The instructions of the stage that becomes the image. */
export function finalStage(): Instruction[] {
  const all = readDockerfile();
  return all.slice(all.findLastIndex(({ name }) => name === 'FROM'));
}

/** What the image sets for whoever runs in it. */
export function imageEnvironment(): Record<string, string> {
  const values = finalStage().filter(({ name }) => name === 'ENV');
  return Object.fromEntries(
    values.flatMap(({ value }) => [...value.matchAll(/(\w+)=(\S+)/g)].map((match) => [match[1] ?? '', match[2] ?? ''])),
  );
}

export type Mounted = { readonly folder: string; readonly files: Readonly<Record<string, string>> };

/**
 * Loads `text` as if it stood at the place that the image names, in a container with `env` and with the files of
 * `mounts`, each below its folder.
 */
export function loadMounted(text: string, mounts: readonly Mounted[], env: Record<string, string> = {}): LoadResult {
  const place = imageEnvironment()['TOLLGATE_CONFIG'] ?? '';
  const root = mkdtempSync(path.join(tmpdir(), 'tollgate-mounts-'));
  try {
    let moved = text;
    for (const { folder, files } of mounts) {
      const target = path.join(root, folder);
      mkdirSync(target, { recursive: true });
      for (const [name, content] of Object.entries(files)) writeFileSync(path.join(target, name), content);
      moved = moved.replaceAll(`${folder}/`, `${target}/`);
    }
    return readConfig(moved, {
      file: path.basename(place),
      path: place,
      env: { ...imageEnvironment(), ...env },
      networks: NETWORKS,
    });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Milliseconds that a proxy may take to end after a SIGTERM. */
export function drainMs({
  drainDelayMs,
  drainMs,
}: {
  readonly drainDelayMs: number;
  readonly drainMs: number;
}): number {
  return drainDelayMs + drainMs;
}
