// The image, built from the Dockerfile and run as it is meant to be: read-only, as nobody, with one folder to write to.
// Slow, so `npm test` names it and passes on; `npm run test:image` runs it where buildah is installed (Debian:
// apt-get install buildah) and says why where it is not.
import { type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageFile, readText, VALUES } from '../../deploy/support.ts';
import { freePort } from '../../support/free-port.ts';
import { temporaryFolder } from '../../support/process.ts';
import { startUpstream } from '../../support/upstream.ts';
import { buildImage, obstacle, type Image, type RunOptions } from './buildah.ts';

const reason = obstacle();
const MEGABYTE = 1_000_000;

describe.skipIf(reason !== undefined)(`the image${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let image: Image;
  const temporary = temporaryFolder();
  chmodSync(temporary.folder, 0o755);
  const removals: (() => void)[] = [temporary.remove];
  const running = new Set<ChildProcess>();

  beforeAll(() => {
    image = buildImage();
    removals.push(image.remove);
    console.log(`the image has ${(image.bytes / MEGABYTE).toFixed(0)} MB, its stand-in base included`);
  }, 600_000);
  afterAll(() => {
    for (const child of running) child.kill('SIGKILL');
    for (const remove of removals) remove();
  });

  /** An empty volume that belongs to the image's user. */
  const volume = (name: string): string => {
    const folder = path.join(temporary.folder, name);
    mkdirSync(folder);
    chmodSync(folder, 0o777);
    return folder;
  };
  const start = (args: readonly string[], options: RunOptions): ChildProcess => {
    const child = image.start(args, options);
    running.add(child);
    child.on('exit', () => running.delete(child));
    return child;
  };
  const run = async (
    args: readonly string[],
    options: RunOptions,
  ): Promise<{ code: number | null; stdout: string; stderr: string }> => {
    const child = start(args, options);
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    const [stdout, stderr] = await Promise.all([
      child.stdout && text(child.stdout),
      child.stderr && text(child.stderr),
    ]);
    return { code: await ended, stdout: stdout ?? '', stderr: stderr ?? '' };
  };

  test('behaviour: the image is smaller than 250 MB', () => {
    expect(image.bytes).toBeLessThan(250 * MEGABYTE);
  });

  test('behaviour: the image says what it is, whom it runs as and how to ask it', () => {
    expect(image.config).toMatchObject({
      User: '65532:65532',
      Entrypoint: ['tollgate'],
      Cmd: ['serve'],
      Volumes: { '/data': {} },
      ExposedPorts: { '8402/tcp': {}, '8403/tcp': {}, '9402/tcp': {} },
      StopSignal: 'SIGTERM',
      Healthcheck: { Test: ['CMD', 'tollgate', 'healthcheck'] },
      Labels: { 'org.opencontainers.image.version': packageFile.version, 'org.opencontainers.image.licenses': 'MIT' },
    });
  });

  test('behaviour: the image holds what runs and nothing else', () => {
    const app = path.join(image.root, 'app');
    expect(readdirSync(app).toSorted()).toEqual(['LICENSE', 'dist', 'package.json']);
    expect(existsSync(path.join(app, 'dist/THIRD-PARTY.txt'))).toBe(true);
    for (const name of ['bin/sh', 'usr/bin/env', 'usr/local/bin/npm'])
      expect(existsSync(path.join(image.root, name))).toBe(false);
  });

  test('refuses: the user of the image writing anywhere but to /data', () => {
    const writable = (name: string): boolean => {
      const { mode, uid, gid } = lstatSync(path.join(image.root, name));
      return (
        !lstatSync(path.join(image.root, name)).isSymbolicLink() &&
        ((mode & 0o002) !== 0 || uid === 65_532 || gid === 65_532)
      );
    };
    const names = readdirSync(image.root, { recursive: true, encoding: 'utf8' }).filter(
      (name) => !/^(proc|dev)\//.test(name),
    );
    for (const name of ['app/dist/main.js', 'nodejs/bin/node', 'etc/tollgate']) expect(names).toContain(name);
    expect(names.filter(writable)).toEqual(['data']);
  });

  test('behaviour: the image runs without a configuration to say its version', async () => {
    const { code, stdout } = await run(['version'], { data: volume('version') });
    expect([code, stdout]).toEqual([0, `tollgate ${packageFile.version} (node ${process.version})\n`]);
  });

  test('refuses: to start the image without a configuration, and says what is missing', async () => {
    const { code, stderr } = await run(image.config.Cmd, { data: volume('nothing') });
    expect(code).toBe(64);
    expect(stderr).toContain('/etc/tollgate/tollgate.yaml');
  });

  test('behaviour: an all-in-one on a read-only root serves, is healthy, makes keys, drains, and kept everything in /data', async () => {
    const upstream = await startUpstream();
    const [proxy, registry, admin] = [await freePort(), await freePort(), await freePort()];
    const file = temporary.write(
      'all-in-one.yaml',
      `proxy: { listen: "0.0.0.0:${proxy}", upstream: "${upstream.url}", undeclared_methods: pay, timeouts: { drain_delay: 0s, drain: 2s } }
registry: { listen: "127.0.0.1:${registry}" }
receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "${VALUES.PAY_TO}", facilitators: ["http://127.0.0.1:1"] }]
routes: [{ route_pattern: /paid, amount: "0.10" }]
`,
    );
    const options = { data: volume('all-in-one'), file, env: { TOLLGATE_ADMIN_LISTEN: `0.0.0.0:${admin}` } };
    const child = start(image.config.Cmd, options);
    const ended = new Promise<number | null>((resolve) => child.on('exit', resolve));
    try {
      await listening(child, 'admin');
      expect((await run(image.config.Healthcheck.Test.slice(2), options)).code).toBe(0);
      expect((await fetch(`http://127.0.0.1:${proxy}/free`)).status).toBe(200);
      expect((await fetch(`http://127.0.0.1:${proxy}/paid`)).status).toBe(402);
      expect(upstream.seen.map(({ url }) => url)).toEqual(['/free']);
      const key = await run(['keys', 'create', '--name', 'my-sdk', '--scope', 'sdk'], options);
      const routes = await fetch(`http://127.0.0.1:${registry}/v1/protected-routes/routes`, {
        headers: { authorization: `Bearer ${key.stdout.trim()}`, 'x-api-key': key.stdout.trim() },
      });
      expect([key.code, routes.status]).toEqual([0, 200]);
      child.kill('SIGTERM');
      expect(await ended).toBe(0);
      expect((await run(['healthcheck'], options)).code).toBe(1);
      const kept = readdirSync(options.data);
      expect(kept).toContain('tollgate.db');
      expect(kept).toContain('secrets.json');
      const { uid, mode } = statSync(path.join(options.data, 'secrets.json'));
      expect([uid, mode & 0o777]).toEqual([65_532, 0o600]);
    } finally {
      child.kill('SIGKILL');
      await upstream.close();
    }
  });

  test('behaviour: the registry and the sidecar of the example files run in the image, as compose.yaml runs them', async () => {
    const upstream = await startUpstream();
    const [proxy, registry] = [await freePort(), await freePort()];
    const example = (name: string, listen: string, port: number): string =>
      temporary.write(name, readText(`config/${name}`).replace(`listen: ${listen}`, `listen: 127.0.0.1:${port}`));
    const env = { ...VALUES, REGISTRY_URL: `http://127.0.0.1:${registry}`, UPSTREAM: upstream.url };
    const place = async (name: string, file: string): Promise<RunOptions> => ({
      data: volume(name),
      file,
      env: { ...env, TOLLGATE_ADMIN_LISTEN: `127.0.0.1:${await freePort()}` },
    });
    const children: ChildProcess[] = [];
    try {
      const registryPlace = await place('registry', example('registry.yaml', '0.0.0.0:8403', registry));
      children.push(start(image.config.Cmd, registryPlace));
      await listening(children[0], 'admin');
      const registered = await fetch(`http://127.0.0.1:${registry}/v1/protected-routes/routes/register`, {
        method: 'POST',
        headers: { authorization: `Bearer ${VALUES.TOLLGATE_API_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ route_pattern: '/paid', method: 'GET', amount: '0.10' }),
      });
      expect(registered.status).toBe(201);
      const sidecarPlace = await place('sidecar', example('sidecar.yaml', '0.0.0.0:8402', proxy));
      const sidecar = start(image.config.Cmd, sidecarPlace);
      children.push(sidecar);
      await Promise.all([listening(sidecar, 'admin'), written(sidecar, 'routes synced')]);
      expect((await run(['healthcheck'], sidecarPlace)).code).toBe(0);
      expect((await fetch(`http://127.0.0.1:${proxy}/free`)).status).toBe(200);
      for (const target of ['/paid', '/reports/q3'])
        expect((await fetch(`http://127.0.0.1:${proxy}${target}`)).status).toBe(402);
    } finally {
      for (const child of children) child.kill('SIGKILL');
      await upstream.close();
    }
  });

  test('behaviour: the image with flags alone serves, is healthy, and keeps everything in /data', async () => {
    const upstream = await startUpstream();
    const [proxy, registry, admin] = [await freePort(), await freePort(), await freePort()];
    const options = { data: volume('flags'), env: { TOLLGATE_ADMIN_LISTEN: `0.0.0.0:${admin}` } };
    const flags = ['--upstream', upstream.url, '--route', 'GET /paid 0.10 USD', '--pay-to', VALUES.PAY_TO];
    const child = start(
      [...flags, '--listen', `0.0.0.0:${proxy}`, '--registry-listen', `127.0.0.1:${registry}`],
      options,
    );
    try {
      await listening(child, 'admin');
      expect((await run(['healthcheck'], options)).code).toBe(0);
      expect((await fetch(`http://127.0.0.1:${proxy}/paid`)).status).toBe(402);
      expect(readdirSync(options.data)).toContain('tollgate.db');
    } finally {
      child.kill('SIGKILL');
      await upstream.close();
    }
  });
});

function listening(child: ChildProcess | undefined, listener: string): Promise<void> {
  return written(child, `"listener":"${listener}"`);
}

/** Resolves when `words` were written; rejects with everything that was where the process ends before. */
function written(child: ChildProcess | undefined, words: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let all = '';
    const read = (chunk: Buffer): void => {
      all += chunk.toString();
      if (all.includes(words)) resolve();
    };
    child?.stdout?.on('data', read);
    child?.stderr?.on('data', read);
    child?.on('exit', (code) => reject(new Error(`ended with ${code}: ${all}`)));
  });
}
