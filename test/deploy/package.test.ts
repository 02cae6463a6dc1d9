// The package as people install it: what is in the tarball, and that what is in it runs under plain Node. Everything
// happens in a copy of the tree, so that nothing is left in the checkout.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/process.ts';
import { openOutput } from '../support/canaries.ts';
import { NODE, packageFile, ROOT, VALUES } from './support.ts';

const temporary = temporaryFolder();
const checkout = path.join(temporary.folder, 'checkout');
const installed = path.join(temporary.folder, 'package');
let packed: string[] = [];

beforeAll(() => {
  mkdirSync(checkout);
  for (const name of [
    'package.json',
    'tsconfig.json',
    'src',
    'config',
    'test',
    'README.md',
    'CHANGELOG.md',
    'LICENSE',
    'Dockerfile',
  ]) {
    cpSync(path.join(ROOT, name), path.join(checkout, name), { recursive: true });
  }
  // What an earlier build left behind must not be packed.
  mkdirSync(path.join(checkout, 'dist'));
  cpSync(path.join(ROOT, 'LICENSE'), path.join(checkout, 'dist/left-behind.js'));
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(checkout, 'node_modules'));
  run('npm', ['pack', '--silent', '--pack-destination', temporary.folder], checkout);
  run('tar', ['-xzf', `tollgate-${packageFile.version}.tgz`], temporary.folder);
  packed = readdirSync(installed, { recursive: true, encoding: 'utf8' }).filter(
    (name) => path.extname(name) !== '' || name === 'LICENSE',
  );
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(installed, 'node_modules'));
}, 60_000);
afterAll(temporary.remove);

function run(program: string, args: readonly string[], cwd: string, env: Record<string, string> = {}): string {
  const { PATH = '', HOME = '' } = process.env;
  const bin = path.join(ROOT, 'node_modules/.bin');
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    env: { PATH: `${bin}:${PATH}`, HOME, ...env },
  });
  openOutput(`${program} ${args.join(' ')}`)(`${stdout}${stderr}`);
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${status}: ${stdout}${stderr}`);
  return stdout;
}

function tollgate(args: readonly string[], env: Record<string, string> = {}): string {
  return run(NODE, [path.join(installed, 'dist/main.js'), ...args], temporary.folder, env);
}

describe('the tarball', () => {
  test('behaviour: holds the program, the examples and the papers', () => {
    const top = new Set(packed.map((name) => name.split('/')[0]));
    expect(top).toEqual(new Set(['CHANGELOG.md', 'LICENSE', 'README.md', 'config', 'dist', 'package.json']));
    expect(packed).toContain('dist/main.js');
    for (const name of readdirSync(path.join(ROOT, 'config'), { recursive: true, encoding: 'utf8' })) {
      if (path.extname(name) !== '') expect(packed).toContain(`config/${name}`);
    }
  });

  test('behaviour: holds no test, no source and nothing that an earlier build left', () => {
    expect(packed.filter((name) => /\.ts$|\btest\b|left-behind|tsbuildinfo/.test(name))).toEqual([]);
  });

  test('behaviour: every file of src that runs is in it, the SQL too', () => {
    const sources = readdirSync(path.join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
    const wanted = sources
      .filter((name) => /\.(ts|sql)$/.test(name))
      .map((name) => `dist/${name.replace(/\.ts$/, '.js')}`);
    expect(wanted.filter((name) => !packed.includes(name))).toEqual([]);
    expect(wanted.some((name) => name.endsWith('.sql'))).toBe(true);
  });

  test('behaviour: nothing in it asks for a .ts file, which would be missing', () => {
    const asking = packed
      .filter((name) => name.endsWith('.js'))
      .filter((name) => /['"`]\.{1,2}\/[^'"`\s]*\.ts['"`]/.test(readFileSync(path.join(installed, name), 'utf8')));
    expect(asking).toEqual([]);
  });
});

describe('installed', () => {
  test('behaviour: every command of the package is there', () => {
    for (const file of Object.values(packageFile.bin)) {
      expect(readFileSync(path.join(installed, file), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
    }
  });

  test('behaviour: it runs, and says its version', () => {
    expect(tollgate(['version'])).toBe(`tollgate ${packageFile.version} (node ${process.version})\n`);
  });

  test('behaviour: it makes a store, with the SQL that came along', () => {
    const file = temporary.write('tollgate.yaml', 'registry: { store: "sqlite:kept/tollgate.db" }\n');
    expect(tollgate(['migrate', '-c', file])).toMatch(/^applied 1/);
    expect(existsSync(path.join(temporary.folder, 'kept/tollgate.db'))).toBe(true);
    expect(tollgate(['migrate', '-c', file])).toBe('up to date\n');
  });

  test('behaviour: it serves, its threads included, and ends when it is told to', async () => {
    const file = temporary.write(
      'serve.yaml',
      'registry: { listen: "127.0.0.1:0", store: "sqlite:served/tollgate.db" }\nadmin: { listen: "127.0.0.1:0" }\n',
    );
    const child = spawn(NODE, [path.join(installed, 'dist/main.js'), 'serve', '-c', file]);
    const exited = new Promise<number | null>((resolve) => child.on('exit', resolve));
    let written = '';
    const ready = new Promise<void>((resolve) => {
      child.stdout.on('data', (chunk: Buffer) => {
        written += chunk.toString();
        if (written.includes('"listener":"admin"')) resolve();
      });
    });
    child.stderr.on('data', (chunk: Buffer) => (written += chunk.toString()));
    try {
      await Promise.race([ready, exited]);
      expect(written).toContain('"listener":"registry"');
      child.kill('SIGTERM');
      expect(await exited).toBe(0);
    } finally {
      child.kill('SIGKILL');
    }
  });

  test('behaviour: the example that people copy came along, and is good', () => {
    expect(() => tollgate(['check', '-c', path.join(installed, 'config/all-in-one.yaml')], VALUES)).not.toThrow();
  });
});
