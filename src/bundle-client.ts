// `tollgate/client` as a package holds it: one module for browsers and for Node from version 20 on, with its map, and the types
// beside it. bundle.ts calls it; nothing of the program is in it.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { rolldown } from 'rolldown';

const CLIENT = path.join(import.meta.dirname, 'client');

/** Writes `client.js`, its map and the declarations into `folder`. */
export async function writeClient(folder: string): Promise<void> {
  const bundle = await rolldown({
    input: path.join(CLIENT, 'client.ts'),
    platform: 'neutral',
    tsconfig: path.join(CLIENT, 'tsconfig.json'),
    transform: { target: 'es2022' },
    onLog: (level, log, handle) => handle(level === 'warn' ? 'error' : level, log),
  });
  await bundle.write({
    dir: folder,
    format: 'esm',
    entryFileNames: 'client.js',
    comments: false,
    sourcemap: true,
    sourcemapExcludeSources: true,
  });
  await bundle.close();
  const compiler = path.join(
    path.dirname(createRequire(import.meta.url).resolve('typescript/package.json')),
    'bin/tsc',
  );
  const options = ['--noEmit', 'false', '--declaration', '--emitDeclarationOnly', '--outDir', folder];
  execFileSync(process.execPath, [compiler, '--project', CLIENT, ...options], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  // What is in the package has no sources beside it: the modules are named as they lie there.
  for (const name of readdirSync(folder).filter((each) => each.endsWith('.d.ts'))) {
    const file = path.join(folder, name);
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'"));
  }
}
