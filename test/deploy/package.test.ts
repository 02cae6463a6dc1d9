// The package as people install it: what is in the tarball, and that what is in it runs under plain Node. Everything
// happens in a copy of the tree, so that nothing is left in the checkout.
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { claimOf } from '../cases/claims.ts';
import { startRegistry, token as mintedToken, type Kit } from '../registry/kit.ts';
import { startBrowser } from '../support/browser.ts';
import { temporaryFolder } from '../support/process.ts';
import { openOutput } from '../support/canaries.ts';
import { BUNDLED, NODE, packageFile, ROOT, VALUES } from './support.ts';

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
    'docs',
    'test',
    'README.md',
    'SECURITY.md',
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
  // No package lies beside it: what it needs of them is in it.
  packed = readdirSync(installed, { recursive: true, encoding: 'utf8' }).filter(
    (name) => path.extname(name) !== '' || name === 'LICENSE',
  );
}, 180_000);
afterAll(temporary.remove);

/** A Node 20 of this machine, which the program would refuse; undefined if there is none. */
const OLD_NODE = (process.env['PATH'] ?? '')
  .split(path.delimiter)
  .map((folder) => path.join(folder, 'node'))
  .find((file) => existsSync(file) && spawnSync(file, ['--version'], { encoding: 'utf8' }).stdout.startsWith('v20.'));

const originOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

/** Whether a file is one of the program, and none of the desk or the client, which run in browsers. */
const isOfProgram = (name: string): boolean => name.endsWith('.js') && !/^dist\/(?:desk|client)\//.test(name);

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
  test('behaviour: the tarball holds the program, the examples and the papers', () => {
    const top = new Set(packed.map((name) => name.split('/')[0]));
    expect(top).toEqual(
      new Set(['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'config', 'dist', 'docs', 'package.json']),
    );
    expect(packed).toContain('dist/main.js');
    for (const name of readdirSync(path.join(ROOT, 'config'), { recursive: true, encoding: 'utf8' })) {
      if (path.extname(name) !== '') expect(packed).toContain(`config/${name}`);
    }
  });

  test('behaviour: the README of the tarball speaks of the package: commands that it has, and nothing of a checkout', () => {
    const text = readFileSync(path.join(installed, 'README.md'), 'utf8');
    expect(text).not.toMatch(/npm (?:start|run|ci|test|pack)|checkout/);
    const named = [...text.matchAll(/`tollgate ([a-z]+)/g)].map(([, name = '']) => name);
    const known = COMMANDS.map(({ name }) => name);
    expect(named.filter((name) => ![...known, 'help'].includes(name))).toEqual([]);
    expect(known.filter((name) => ![...named, 'serve', 'demo'].includes(name))).toEqual([]);
  });

  test('behaviour: no link of the packed papers leads nowhere', () => {
    for (const paper of packed.filter((name) => name.endsWith('.md'))) {
      const links = [...readFileSync(path.join(installed, paper), 'utf8').matchAll(/\]\(([^)\s]+)\)/g)];
      for (const [, link = ''] of links) {
        const [target = ''] = link.split('#');
        if (target === '' || /^[a-z]+:/.test(link)) continue;
        const place = path.join(installed, path.dirname(paper), target);
        expect.soft(existsSync(place), `${paper}: ${link}`).toBe(true);
      }
    }
  });

  test('behaviour: the papers of the checkout are as they were before it was packed', () => {
    for (const paper of ['README.md', 'SECURITY.md', 'docs/operating.md'])
      expect(readFileSync(path.join(checkout, paper), 'utf8')).toBe(readFileSync(path.join(ROOT, paper), 'utf8'));
    expect(packed.filter((name) => name.includes('.checkout-'))).toEqual([]);
    expect(readdirSync(checkout).filter((name) => name.startsWith('.checkout-'))).toEqual([]);
  });

  test('behaviour: the tarball holds no test, no source and nothing that an earlier build left', () => {
    const isType = (name: string): boolean => /^dist\/client\/[\w-]+\.d\.ts$/.test(name);
    const sources = packed.filter((name) => /\.ts$|\btest\b|left-behind|tsbuildinfo/.test(name));
    expect(sources.filter((name) => !isType(name))).toEqual([]);
  });

  test('behaviour: the desk is in the tarball, built and compressed', () => {
    const list = JSON.parse(readFileSync(path.join(installed, 'dist/desk/files.json'), 'utf8')) as {
      path: string;
      file: string;
    }[];
    expect(list.map((each) => each.path)).toContain('/desk/');
    for (const { file } of list) expect(packed).toContain(`dist/desk/${file}`);
    for (const file of ['index.html', ...list.map((each) => each.file).filter((name) => /\.(?:js|css)$/.test(name))])
      expect(packed).toEqual(expect.arrayContaining([`dist/desk/${file}.br`, `dist/desk/${file}.gz`]));
  });

  test('behaviour: the SQL of the store is in the tarball, and the files of its threads', () => {
    expect(packed).toContain('dist/schema.sql');
    expect(packed).toContain('dist/charge-worker.js');
    expect(packed).toContain('dist/openapi-worker.js');
  });

  test('behaviour: the licence of every package that the program is made of is in the tarball', () => {
    const text = readFileSync(path.join(installed, 'dist/THIRD-PARTY.txt'), 'utf8');
    for (const name of BUNDLED) {
      const version = packageFile.devDependencies[name] ?? '';
      const [, real = name, exact = version] = /^npm:(.+)@(.+)$/.exec(version) ?? [];
      expect(text).toContain(`${real} ${exact} (`);
    }
    // One that is not ours to name: of a package of a package.
    expect(text).toContain('follow-redirects ');
    expect(text).not.toContain('typescript');
  });

  test('behaviour: a map lies beside every file of the program that holds more than references to others', () => {
    const programs = packed.filter(isOfProgram);
    const written = programs.filter((name) => readFileSync(path.join(installed, name), 'utf8').length > 400);
    expect(written.length).toBeGreaterThan(5);
    // The bundler's own few lines come of no file of ours.
    const ours = written.filter((name) => name !== 'dist/rolldown-runtime.js');
    expect(ours.filter((name) => !packed.includes(`${name}.map`))).toEqual([]);
  });

  test('behaviour: no file of the program holds a character that would double its memory', () => {
    const texts = packed.filter(isOfProgram);
    expect(texts.filter((name) => /[^\0-\x7f]/.test(readFileSync(path.join(installed, name), 'utf8')))).toEqual([]);
  });

  test('behaviour: every text file of the desk names its charset, for it may hold any character', () => {
    const list = JSON.parse(readFileSync(path.join(installed, 'dist/desk/files.json'), 'utf8')) as { type: string }[];
    const texts = list.map(({ type }) => type).filter((type) => type.startsWith('text/'));
    expect(new Set(texts)).toEqual(
      new Set(['text/html', 'text/css', 'text/javascript'].map((type) => `${type}; charset=utf-8`)),
    );
  });

  test('behaviour: the files of a proxy and a registry do not bring fetch along', () => {
    const compose = JSON.stringify(path.join(installed, 'dist/compose.js'));
    const loaded = `await import(${compose}); console.log(process.moduleLoadList.filter((name) => /undici|Module http$/.test(name)).join())`;
    expect(run(NODE, ['--input-type=module', '--eval', loaded], temporary.folder)).toBe('NativeModule http\n');
  });

  test('behaviour: every file of the tarball can be loaded, with no package beside it', () => {
    const parts = packed
      .filter((name) => isOfProgram(name) && !/(?:main|charge-worker|worker-process)\.js$/.test(name))
      .map((name) => `await import(${JSON.stringify(path.join(installed, name))});`);
    run(NODE, ['--input-type=module', '--eval', parts.join('\n')], temporary.folder);
  });

  test('behaviour: nothing in the tarball asks for a .ts file, which would be missing', () => {
    const asking = packed
      .filter((name) => name.endsWith('.js'))
      .filter((name) => /['"`]\.{1,2}\/[^'"`\s]*\.ts['"`]/.test(readFileSync(path.join(installed, name), 'utf8')));
    expect(asking).toEqual([]);
  });
});

/** Head and body of what a browser is answered. */
async function openAsBrowser(url: string): Promise<string> {
  const asked = get(url, { headers: { accept: 'text/html', 'user-agent': 'Mozilla/5.0' } });
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const lines = response.rawHeaders.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`));
  return `HTTP/1.1 ${response.statusCode} \r\n${lines.join('')}\r\n${await text(response)}`;
}

const fresh = path.join(temporary.folder, 'fresh');

/** A folder into which npm installed the tarball, and nothing else. */
function installFresh(): string {
  if (existsSync(fresh)) return fresh;
  mkdirSync(fresh);
  const tarball = path.join(temporary.folder, `tollgate-${packageFile.version}.tgz`);
  run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], fresh);
  return fresh;
}

describe('installed', () => {
  test('behaviour: the package needs no other one, and npm installs it without a registry', () => {
    const published = JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8')) as Record<string, unknown>;
    for (const kind of ['dependencies', 'optionalDependencies', 'peerDependencies', 'bundleDependencies'])
      expect(published[kind]).toBeUndefined();
    const fresh = installFresh();
    expect(readdirSync(path.join(fresh, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['tollgate']);
    const program = path.join(fresh, 'node_modules/.bin/tollgate');
    expect(run(program, ['version'], fresh)).toBe(`tollgate ${packageFile.version} (node ${process.version})\n`);
  });

  describe('tollgate/client', () => {
    let kit: Kit;
    let server: Server;
    /** Tells the streams something again and again, until they are open and were told. */
    let telling: NodeJS.Timeout;
    beforeAll(async () => {
      installFresh();
      const script = readFileSync(path.join(fresh, 'node_modules/tollgate/dist/client/client.js'), 'utf8');
      server = createServer((req, res) => {
        const isScript = req.url === '/client.js';
        res.writeHead(200, { 'Content-Type': isScript ? 'text/javascript' : 'text/html' });
        res.end(isScript ? script : '<!doctype html><title>elsewhere</title>');
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      kit = await startRegistry({ settings: { corsOrigins: [originOf(server)] } });
      let paid = 0;
      const pay = (): Promise<unknown> =>
        kit.ledger.claim(claimOf((paid += 1)), { owner: 'one', leaseMs: 60_000, maxUnsettledPerPayer: 8 });
      telling = setInterval(() => void pay(), 50);
    });
    afterAll(async () => {
      clearInterval(telling);
      server.closeAllConnections();
      server.close();
      await kit.close();
    });

    /** Calls of every kind, in any place that has fetch; resolves to what came back. */
    const USE = `
const { data: made } = await tollgate.POST('/v1/billing/protected-routes', { body: { route_pattern: '/' + place, method: 'GET', amount: '0.10' } });
const wrong = await tollgate.PATCH('/v1/billing/protected-routes/{id}', { params: { id: made.id }, body: { amount: 'x' } });
const patterns = [];
for await (const page of tollgate.pages('/v1/billing/protected-routes', { query: { limit: 1, q: '/' + place } })) patterns.push(...page.data.map((each) => each.route_pattern));
const types = [];
for await (const { type } of tollgate.events('/v1/billing/charges/events')) if (types.push(type) === 2) break;
const thrown = await tollgate.pages('/v1/billing/charges', { query: { cursor: 'x' } }).next().catch((error) => error instanceof TollgateError && error.problem.code);
const told = JSON.stringify([patterns, wrong.error.code, wrong.response.status, types, thrown]);
`;
    const TOLD = (place: string): string =>
      JSON.stringify([[`/${place}`], 'invalid', 422, ['charge', 'charge'], 'malformed']);

    test.skipIf(OLD_NODE === undefined)(
      'behaviour: the packed client works under Node 20, as its import is written',
      async () => {
        const token = await mintedToken({ ttlSeconds: 600 });
        const file = path.join(fresh, 'use.mjs');
        writeFileSync(
          file,
          `import { createTollgate, TollgateError } from 'tollgate/client';
const place = 'node';
const tollgate = createTollgate({ baseUrl: 'http://127.0.0.1:${kit.port}', token: ${JSON.stringify(token)} });
${USE}console.log(process.versions.node.split('.')[0], told);`,
        );
        // Not at once: the registry that answers lives in this process.
        const { stdout } = await promisify(execFile)(OLD_NODE ?? '', [file], { cwd: fresh });
        expect(stdout).toBe(`20 ${TOLD('node')}\n`);
      },
    );

    test('behaviour: the packed client works in a browser, from a page of another origin that the registry allows', async () => {
      const browser = await startBrowser();
      try {
        const { page, complaints } = await browser.open();
        await page.goto(originOf(server));
        const token = await mintedToken({ ttlSeconds: 600 });
        const told = await page.evaluate<string>(`(async () => {
const { createTollgate, TollgateError } = await import('/client.js');
const place = 'browser';
const tollgate = createTollgate({ baseUrl: 'http://127.0.0.1:${kit.port}', token: async () => ${JSON.stringify(token)} });
${USE}return told; })()`);
        expect(told).toBe(TOLD('browser'));
        expect(complaints).toEqual([]);
      } finally {
        await browser.close();
      }
    });

    test('behaviour: the types of the packed client are found by its import and compile without any package', () => {
      writeFileSync(
        path.join(fresh, 'use.mts'),
        `import { createTollgate, type Schemas } from 'tollgate/client';
const tollgate = createTollgate({ baseUrl: '', token: 'x' });
export const route = async (id: string): Promise<Schemas['Route'] | undefined> =>
  (await tollgate.GET('/v1/billing/protected-routes/{id}', { params: { id } })).data;
// @ts-expect-error there is no such path
void tollgate.GET('/v1/nothing');
`,
      );
      const compilerOptions = {
        strict: true,
        noEmit: true,
        module: 'nodenext',
        target: 'es2022',
        lib: ['es2022', 'dom'],
        types: [],
      };
      writeFileSync(path.join(fresh, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.mts'] }));
      run(NODE, [path.join(ROOT, 'node_modules/typescript/bin/tsc'), '--project', fresh], fresh);
    });

    test('behaviour: the client is one module that imports nothing, of at most 4 kB compressed', () => {
      const text = readFileSync(path.join(fresh, 'node_modules/tollgate/dist/client/client.js'), 'utf8');
      expect(text).not.toMatch(/^import |\bimport\(|\brequire\(/m);
      expect(gzipSync(text).length).toBeLessThan(4_000);
    });
  });

  test('refuses: an old Node, in one sentence and before anything is loaded that it cannot read', () => {
    const main = path.join(installed, 'dist/main.js');
    const text = readFileSync(main, 'utf8');
    expect([...text.matchAll(/^import .* from "(.*)";$/gm)].map(([, name]) => name)).toEqual(['node:fs']);
    const pretend = `data:text/javascript,${encodeURIComponent(
      'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.19.0" } });',
    )}`;
    const { status, stdout, stderr } = spawnSync(NODE, ['--import', pretend, main, 'version'], { encoding: 'utf8' });
    expect([status, stdout]).toEqual([64, '']);
    expect(stderr).toMatch(/^tollgate needs Node \d+ or newer and this is v[\d.]+: [^\n]*\n$/);
    const oldest = /\d+/.exec(packageFile.engines.node)?.[0];
    expect(stderr).toContain(`needs Node ${oldest} or newer`);
  });

  test('behaviour: the demo of the package advises commands that it has, and no script of the checkout', async () => {
    const child = spawn(NODE, [path.join(installed, 'dist/main.js'), 'demo'], {
      cwd: temporary.folder,
      env: { PATH: process.env['PATH'] },
    });
    const exited = new Promise<number | null>((resolve) => child.on('exit', resolve));
    let written = '';
    const told = new Promise<void>((resolve) => {
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => {
          written += chunk.toString();
          if (written.includes('show below.')) resolve();
        });
    });
    try {
      await Promise.race([told, exited]);
      expect(written).not.toMatch(/\bnpm\b|\bnpx\b/);
      const advised = [...written.matchAll(/^ *tollgate (\S+)/gm)].map(([, word]) => word);
      expect(advised.length).toBeGreaterThan(1);
      const [paid = ''] = /http:\/\/127\.0\.0\.1:\d+\/premium\/report/.exec(written) ?? [];
      const page = await openAsBrowser(paid);
      expect(page).toMatch(/^HTTP\/1\.1 402 [^]*\r\nContent-Type: text\/html/i);
      expect(page).toContain("; connect-src 'self';");
      // Which wallets there are is the browser's affair.
      expect(page).not.toMatch(/demo wallet|CustomEvent\(/i);
      const commands = tollgate(['help']);
      for (const word of advised) if (word !== '--upstream') expect(commands).toContain(`  ${word} `);
      child.kill('SIGINT');
      expect(await exited).toBe(0);
    } finally {
      child.kill('SIGKILL');
    }
  });

  test('behaviour: every command of the package is there', () => {
    for (const file of Object.values(packageFile.bin)) {
      expect(readFileSync(path.join(installed, file), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
    }
  });

  test('behaviour: the installed program runs, and says its version', () => {
    expect(tollgate(['version'])).toBe(`tollgate ${packageFile.version} (node ${process.version})\n`);
  });

  test('behaviour: the installed program reads an API description, in the thread that came along', () => {
    temporary.write('openapi.yaml', 'openapi: 3.0.0\npaths: { /a: { get: {} } }\n');
    const file = temporary.write(
      'listed.yaml',
      [
        'proxy: { upstream: "http://127.0.0.1:3000" }',
        'registry: { store: "sqlite:listed/tollgate.db" }',
        'receivers: [{ id: default, network: base-sepolia, pay_to_address: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C", facilitators: [x402.org] }]',
        'routes: [{ method: GET, route_pattern: /a, amount: "0.10" }, { method: GET, route_pattern: /b, amount: "0.10" }]',
        'discovery: { openapi: openapi.yaml }',
      ].join('\n'),
    );
    const { summary, warnings } = JSON.parse(tollgate(['check', '-c', file, '--json'])) as Record<string, never>;
    expect(summary).toMatchObject({ discovery: '2 of 2 routes will be public' });
    expect(warnings).toContain('openapi.yaml:2: has no operation for GET /b; its method and template alone are told');
    expect(JSON.parse(tollgate(['openapi', '--public', '-c', file]))).toMatchObject({ paths: {} });
  });

  test('behaviour: the installed program makes a store, with the SQL that came along', () => {
    const file = temporary.write('tollgate.yaml', 'registry: { store: "sqlite:kept/tollgate.db" }\n');
    const versions = packed.filter((name) => /^dist\/schema(?:-\d+)?\.sql$/.test(name)).map((_, at) => at + 1);
    expect(versions.length).toBeGreaterThan(1);
    expect(tollgate(['migrate', '-c', file]).split('\n')).toContain(`applied ${versions.join(', ')}`);
    expect(existsSync(path.join(temporary.folder, 'kept/tollgate.db'))).toBe(true);
    expect(tollgate(['migrate', '-c', file])).toBe('up to date\n');
  });

  test('behaviour: the installed program serves, its threads included, and ends when it is told to', async () => {
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

  test('behaviour: the example that people copy came along with the package, and is good', () => {
    expect(() => tollgate(['check', '-c', path.join(installed, 'config/all-in-one.yaml')], VALUES)).not.toThrow();
  });
});
