// Builds the image and runs what is in it without a container engine's daemon: buildah builds, and a chroot in a mount
// namespace of its own runs, with the root file system read-only and as the image's user. The base images cannot be
// pulled everywhere, so stand-ins of the same names are made from the Node of the checkout and the libraries that it
// needs: they hold less than the real ones, but nothing that those would not hold.
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { ROOT } from '../../deploy/support.ts';

/** Why the image cannot be built here; undefined where it can. */
export function obstacle(): string | undefined {
  if (process.env['TOLLGATE_TEST_IMAGE'] === undefined) return 'slow: npm run test:image runs it';
  for (const program of ['buildah', 'unshare', 'chroot', 'ldd']) {
    if (spawnSync(program, ['--version']).status !== 0) return `${program} is not installed`;
  }
  if (process.getuid?.() !== 0) return 'needs root, for mount namespaces';
  return undefined;
}

/** What the image says about itself, as Docker reads it. */
export type ImageConfig = {
  readonly User: string;
  readonly Entrypoint: string[];
  readonly Cmd: string[];
  readonly Env: string[];
  readonly Volumes: Record<string, unknown>;
  readonly ExposedPorts: Record<string, unknown>;
  readonly Labels: Record<string, string>;
  readonly StopSignal: string;
  readonly WorkingDir: string;
  readonly Healthcheck: { readonly Test: string[] };
};

export type Image = {
  readonly config: ImageConfig;
  readonly bytes: number;
  /** The root file system, as a folder. */
  readonly root: string;
  /** `args` in a fresh container-like place: read-only root, `/data` and the configuration mounted, the image's user. */
  readonly start: (args: readonly string[], options: RunOptions) => ChildProcess;
  readonly remove: () => void;
};

export type RunOptions = {
  /** A folder of the host, for `/data`. */
  readonly data: string;
  /** A file of the host, for `/etc/tollgate/tollgate.yaml`. */
  readonly file?: string;
  readonly env?: Readonly<Record<string, string>>;
};

const CONFIG_PLACE = 'etc/tollgate/tollgate.yaml';

export function buildImage(): Image {
  const work = mkdtempSync(path.join(tmpdir(), 'tollgate-image-'));
  const buildah = (...args: string[]): string =>
    execFileSync(
      'buildah',
      ['--root', path.join(work, 'root'), '--runroot', path.join(work, 'run'), '--storage-driver', 'vfs', ...args],
      {
        encoding: 'utf8',
        env: { ...process.env, BUILDAH_ISOLATION: 'chroot' },
        stdio: ['ignore', 'pipe', 'pipe'],
        maxBuffer: 64 * 1024 * 1024,
      },
    );
  const remove = (): void => rmSync(work, { recursive: true, force: true });
  try {
    makeStandIns(work, buildah);
    const npmCache = path.join(homedir(), '.npm');
    mkdirSync(npmCache, { recursive: true });
    buildah(
      'build',
      '--format',
      'docker',
      '--pull-never',
      '--volume',
      `${npmCache}:/root/.npm`,
      '--tag',
      'tollgate',
      ROOT,
    );
    const container = buildah('from', '--pull-never', 'tollgate').trim();
    const root = buildah('mount', container).trim();
    // A container runtime makes what is mounted over; a read-only root cannot.
    for (const name of ['proc', 'dev']) mkdirSync(path.join(root, name), { recursive: true });
    writeFileSync(path.join(root, 'dev/null'), '');
    const inspected = JSON.parse(buildah('inspect', '--type', 'image', 'tollgate')) as {
      Docker: { config: ImageConfig };
    };
    const { config } = inspected.Docker;
    return {
      config,
      root,
      bytes: Number(execFileSync('du', ['-sb', root], { encoding: 'utf8' }).split('\t')[0]),
      start: (args, options) => startIn(root, config, args, options),
      remove,
    };
  } catch (error) {
    remove();
    if (error instanceof Error && 'stderr' in error)
      throw new Error(`${error.message}\n${String(error.stderr)}`, { cause: error });
    throw error;
  }
}

/** `unshare`, the shell and `chroot` each become the next, so that the child is the program itself and gets its signals. */
function startIn(
  root: string,
  config: ImageConfig,
  args: readonly string[],
  { data, file, env = {} }: RunOptions,
): ChildProcess {
  const place = path.join(root, CONFIG_PLACE);
  if (file === undefined) rmSync(place, { force: true });
  else writeFileSync(place, '');
  const script = [
    'set -e',
    'mount --make-rprivate /',
    'mount --bind "$1" "$1"',
    'mount --bind "$2" "$1/data"',
    file === undefined ? '' : `mount --bind "$3" "$1/${CONFIG_PLACE}"`,
    'mount --bind /dev/null "$1/dev/null"',
    'mount -t proc proc "$1/proc"',
    'mount -o remount,ro,bind "$1"',
    'root="$1"; shift 3',
    `exec chroot --userspec=${config.User} --groups= "$root" "$@"`,
  ].join('\n');
  const given = Object.fromEntries(config.Env.map((item) => item.split(/=(.*)/s).slice(0, 2)));
  return spawn(
    'unshare',
    ['--mount', '/bin/sh', '-c', script, 'sh', root, data, file ?? '', ...config.Entrypoint, ...args],
    {
      env: { ...given, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
}

function makeStandIns(work: string, buildah: (...args: string[]) => string): void {
  const node = realpathSync(path.join(ROOT, 'node_modules/node/bin/node'));
  const argument = (name: string): string => new RegExp(`^ARG ${name}=(\\S+)`, 'm').exec(dockerfile)?.[1] ?? '';
  const dockerfile = readFileSync(path.join(ROOT, 'Dockerfile'), 'utf8');
  const runtime = path.join(work, 'runtime');
  copyProgram(runtime, node, '/nodejs/bin/node');
  mkdirSync(path.join(runtime, 'etc'));

  const builder = path.join(work, 'builder');
  copyProgram(builder, node, '/usr/local/bin/node');
  for (const tool of ['sh', 'env', 'rm', 'cp', 'sed', 'chmod', 'mkdir', 'ln']) {
    copyProgram(builder, realpathSync(which(tool)), `/usr/bin/${tool}`);
  }
  // What the build loads into Node is linked to more of the C library than Node is.
  for (const binding of bindingsOfBundler()) copyLibraries(builder, binding);
  symlinkSync('usr/bin', path.join(builder, 'bin'));
  const npm = path.resolve(path.dirname(realpathSync(which('npm'))), '..');
  cpSync(npm, path.join(builder, 'usr/local/lib/node_modules/npm'), { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', path.join(builder, 'usr/local/bin/npm'));
  mkdirSync(path.join(builder, 'root'));
  mkdirSync(path.join(builder, 'tmp'));
  mkdirSync(path.join(builder, 'etc'));
  // Where a machine trusts an authority of its own, npm has to as well.
  const authorities = process.env['NODE_EXTRA_CA_CERTS'];
  if (authorities !== undefined) copyFileSync(authorities, path.join(builder, 'etc/authorities.pem'));

  const environment = 'ENV PATH=/usr/local/bin:/usr/bin HOME=/root';
  const trust = authorities === undefined ? '' : ' NODE_EXTRA_CA_CERTS=/etc/authorities.pem';
  for (const [folder, tag, env] of [
    ['runtime', argument('RUNTIME_IMAGE'), ''],
    ['builder', argument('NODE_IMAGE').replace('${NODE_VERSION}', argument('NODE_VERSION')), environment + trust],
  ] as const) {
    const file = path.join(work, `${folder}.dockerfile`);
    writeFileSync(file, `FROM scratch\nCOPY ${folder}/ /\n${env}\n`);
    buildah('build', '--quiet', '--format', 'docker', '--file', file, '--tag', tag, work);
    rmSync(path.join(work, folder), { recursive: true });
  }
}

/** A program of this machine with the libraries that it is linked to, each where the loader looks for it. */
function copyProgram(root: string, program: string, target: string): void {
  copyTo(root, program, target);
  copyLibraries(root, program);
}

/** The native parts of what `npm run build` is made with. */
function bindingsOfBundler(): string[] {
  const folder = path.join(ROOT, 'node_modules/@rolldown');
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.node'))
    .map((name) => path.join(folder, name));
}

function copyLibraries(root: string, program: string): void {
  const libraries = [...execFileSync('ldd', [program], { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g)].map(
    (match) => match[1] ?? '',
  );
  for (const library of libraries) copyTo(root, library, library);
}

function copyTo(root: string, from: string, to: string): void {
  mkdirSync(path.dirname(path.join(root, to)), { recursive: true });
  copyFileSync(from, path.join(root, to));
}

function which(name: string): string {
  return execFileSync('/bin/sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
}
