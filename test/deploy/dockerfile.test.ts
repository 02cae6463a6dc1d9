// The Dockerfile against the program and the package: versions agree, commands exist, nothing is copied that the build
// does not see, nobody is root. That it builds and runs is test/lab/image's, where an engine is installed.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { loadConfig } from '../../src/config/load.ts';
import { parseListen } from '../../src/config/addresses.ts';
import { fakeIo } from '../cli/support.ts';
import {
  BUNDLED,
  finalStage,
  imageEnvironment,
  packageFile,
  readDockerfile,
  readText,
  ROOT,
  VALUES,
} from './support.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';

const all = readDockerfile();
const last = finalStage();

function valueOf(name: string, among = last): string {
  const [found, ...more] = among.filter((instruction) => instruction.name === name);
  if (found === undefined || more.length > 0) throw new Error(`not exactly one ${name}`);
  return found.value;
}

function argument(name: string): string | undefined {
  return all
    .filter((instruction) => instruction.name === 'ARG')
    .map(({ value }) => value.split('='))
    .find(([key]) => key === name)?.[1];
}

describe('versions', () => {
  test('behaviour: both images name Node, the one that the tests run on', () => {
    const tested = packageFile.devDependencies['node'] ?? '';
    expect(argument('NODE_VERSION')).toBe(tested);
    expect(argument('NODE_IMAGE')).toContain('node:${NODE_VERSION}-');
    expect(argument('RUNTIME_IMAGE')).toContain(`/nodejs${tested.split('.')[0]}-`);
    expect(Number(tested.split('.')[0])).toBeGreaterThanOrEqual(Number(/\d+/.exec(packageFile.engines.node)?.[0]));
    expect(process.versions.node).toBe(tested);
  });

  test('behaviour: the labels of the image say what the package says', () => {
    expect(argument('VERSION')).toBe(packageFile.version);
    const labels = Object.fromEntries(
      [...valueOf('LABEL').matchAll(/([\w.]+)="([^"]*)"/g)].map((match) => [match[1], match[2]]),
    );
    expect(labels).toEqual({
      'org.opencontainers.image.title': 'Tollgate',
      'org.opencontainers.image.description': packageFile.description,
      'org.opencontainers.image.licenses': packageFile.license,
      'org.opencontainers.image.version': '${VERSION}',
      'org.opencontainers.image.revision': '${REVISION}',
    });
  });
});

describe('what runs', () => {
  const names = COMMANDS.map(({ name }) => name);

  test('behaviour: entrypoint and command of the image are an exec form of a command that exists', () => {
    const [program, ...rest] = JSON.parse(valueOf('ENTRYPOINT')) as string[];
    expect([packageFile.bin[program ?? ''], rest]).toEqual(['dist/main.js', []]);
    const command = JSON.parse(valueOf('CMD')) as string[];
    expect(command).toHaveLength(1);
    expect(names).toContain(command[0]);
  });

  test('behaviour: the name tollgate leads to the program, whose interpreter is that of the runtime image', () => {
    const prepared = all.find(({ name, value }) => name === 'RUN' && value.includes('ln -s'))?.value ?? '';
    expect(prepared).toContain('ln -s /app/dist/main.js /system/usr/local/bin/tollgate');
    expect(imageEnvironment()['PATH']?.split(':')).toContain('/usr/local/bin');
    expect(prepared).toContain("sed -i '1s|.*|#!/nodejs/bin/node --v8-pool-size=1|' dist/main.js");
    expect(readText('src/main.ts').split('\n')[0]).toMatch(/^#!/);
    expect(last.filter(({ name, value }) => name === 'COPY' && value.endsWith(' /'))).toEqual([
      { name: 'COPY', value: '--from=build /system/ /' },
    ]);
  });

  test('behaviour: the healthcheck is the program itself, and has time to answer', () => {
    const [, timeout, command] = /--timeout=(\d+)s .*CMD (\[.*\])$/.exec(valueOf('HEALTHCHECK')) ?? [];
    const [program, name, ...rest] = JSON.parse(command ?? '[]') as string[];
    expect([program, rest]).toEqual([JSON.parse(valueOf('ENTRYPOINT'))[0], []]);
    expect(names).toContain(name);
    const own = /TIMEOUT_MS = (\d+)/.exec(readText('src/cli/healthcheck.ts'))?.[1];
    expect(Number(timeout) * 1000).toBeGreaterThan(Number(own));
  });

  test('behaviour: the signal that stops the image is the one that makes it drain', () => {
    expect(valueOf('STOPSIGNAL')).toBe('SIGTERM');
    expect(readText('src/cli/serve.ts')).toContain("'SIGTERM'");
  });

  test('behaviour: the image runs as nobody, by number, and writes to /data alone', () => {
    expect(valueOf('USER')).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(JSON.parse(valueOf('VOLUME'))).toEqual(['/data']);
    const owned = last.filter(({ name, value }) => name === 'COPY' && value.includes('--chown'));
    expect(owned).toEqual([{ name: 'COPY', value: `--from=build --chown=${valueOf('USER')} /data /data` }]);
    expect(last.map(({ name }) => name)).not.toContain('RUN');
  });

  test('behaviour: the default data folder beside the configuration leads to the volume', () => {
    const place = imageEnvironment()['TOLLGATE_CONFIG'] ?? '';
    const prepared = all.find(({ name, value }) => name === 'RUN' && value.includes('ln -s'))?.value;
    expect(prepared).toContain(`ln -s /data /system${path.dirname(place)}/data`);
    const loaded = loadConfig(path.join(ROOT, 'config/all-in-one.yaml'), VALUES, '/', NETWORKS);
    const store = loaded.ok ? loaded.config.registry?.store.name : undefined;
    expect(path.relative(path.join(ROOT, 'config'), store ?? '')).toBe('data/tollgate.db');
    // Without a file, the data folder is the one below the working folder.
    expect(valueOf('WORKDIR')).toBe('/');
  });

  test('behaviour: the image exposes the default ports, and its admin listener to the outside', () => {
    const env: Record<string, string> = { ...imageEnvironment(), ...VALUES };
    const loaded = loadConfig(path.join(ROOT, 'config/all-in-one.yaml'), env, '/', NETWORKS);
    if (!loaded.ok) throw new Error('all-in-one.yaml does not load');
    const { proxy, registry, admin } = loaded.config;
    expect(valueOf('EXPOSE').split(' ').map(Number)).toEqual([
      proxy?.listen.port,
      registry?.listen.port,
      admin.listen.port,
    ]);
    expect(admin.listen).toEqual({ host: '0.0.0.0', port: 9402 });
    expect(parseListen(env['TOLLGATE_ADMIN_LISTEN'] ?? '')).toEqual(admin.listen);
  });

  test('behaviour: what the README runs protects something, reaches an API on its host, and can make keys', async () => {
    const [run = ''] = /^docker run (?:[^\n\\]|\\\n)*/m.exec(readText('README.md')) ?? [];
    const all = (option: RegExp): string[] => [...run.matchAll(option)].map(([, value = '']) => value);
    const [name = '', ...others] = all(/--name (\S+)/g);
    const [file = ''] = all(/-v \$PWD\/(\S+):\/etc\/tollgate\/tollgate\.yaml:ro/g);
    expect([others, all(/-v (\S+):\/data /g).length]).toEqual([[], 1]);
    const given = Object.fromEntries(all(/-e (\S+)/g).map((pair) => pair.split('=') as [string, string]));
    const env: Record<string, string> = { ...imageEnvironment(), ...given, PAY_TO: VALUES.PAY_TO };
    const loaded = loadConfig(path.join(ROOT, file), env, '/', NETWORKS);
    if (!loaded.ok) throw new Error(`${file} does not load`);
    const { proxy } = loaded.config;
    expect(all(/-p (\S+)/g)).toEqual([`${proxy?.listen.port}:${proxy?.listen.port}`]);
    expect(all(/--add-host (\S+)/g)).toEqual([`${proxy?.upstream.host}:host-gateway`]);

    const after = readText('README.md').split(run)[1]?.split('```')[0] ?? '';
    const [, port, target = ''] = /^curl -i http:\/\/localhost:(\d+)(\/\S+) +# 402/m.exec(after) ?? [];
    const io = fakeIo({ folder: ROOT, env });
    expect(await runCommandLine(['match', 'GET', target, '-c', file], COMMANDS, io)).toBe(0);
    expect([Number(port), io.stdout()]).toEqual([proxy?.listen.port, expect.stringContaining('payment required')]);
    const commands = [...after.matchAll(/^docker exec (\S+) tollgate (\S+)/gm)].map(([, ...words]) => words);
    expect(commands).toEqual([[name, 'keys']]);
    expect(names).toContain('keys');
  });
});

describe('what goes in', () => {
  const ignored = readText('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));

  test('behaviour: every file is kept out of the image but what is copied', () => {
    const copied = all
      .filter(({ name, value }) => name === 'COPY' && !value.includes('--from'))
      .flatMap(({ value }) => value.split(/\s+/).slice(0, -1));
    expect(copied.length).toBeGreaterThan(0);
    for (const source of copied) expect(existsSync(path.join(ROOT, source)), source).toBe(true);
    expect(ignored).toEqual(['*', ...[...ignored.slice(1)]]);
    expect(new Set(ignored.slice(1))).toEqual(new Set(copied.map((source) => `!${source}`)));
  });

  test('behaviour: the build of the image comes from the lock file and runs no script, and only what was built goes into the image', () => {
    const installs = all
      .filter(({ name, value }) => name === 'RUN' && /\bnpm (?!run)/.test(value))
      .map(({ value }) => value);
    expect(installs).toEqual(['npm ci --ignore-scripts --no-audit --no-fund']);
    expect(last.filter(({ name, value }) => name === 'COPY' && /node_modules/.test(value))).toEqual([]);
    expect(last).toContainEqual({ name: 'COPY', value: '--from=build /app/dist /app/dist' });
  });

  test('behaviour: no package that the program or its bundler is made of needs a script of its own to be installed', () => {
    const { packages } = JSON.parse(readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { dependencies?: Record<string, string>; hasInstallScript?: boolean }>;
    };
    const used = new Set<string>();
    const use = (name: string): void => {
      const place = `node_modules/${name}`;
      if (used.has(place) || packages[place] === undefined) return;
      used.add(place);
      for (const other of Object.keys(packages[place].dependencies ?? {})) use(other);
    };
    for (const name of [...BUNDLED, 'rolldown']) use(name);
    expect(used.size).toBeGreaterThan(BUNDLED.length);
    expect([...used].filter((place) => packages[place]?.hasInstallScript === true)).toEqual([]);
  });
});
