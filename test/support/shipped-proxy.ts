// The shipped configurations of other proxies (config/proxies), run on the real program if this machine has it. Nothing of a
// configuration is changed but addresses, the secret, and where the program may write.
import { spawn, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, readFileSync, writeFileSync, mkdirSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { freePort } from './free-port.ts';

export const SHIPPED = path.resolve(import.meta.dirname, '../../config/proxies');

export type ProxyProgram = {
  readonly name: string;
  readonly dialect: string;
  readonly program: string;
  /** Files of the configuration, the main one first. */
  readonly files: readonly string[];
  readonly args: (folder: string, file: string) => readonly string[];
  /** Files without which the program cannot run its configuration. */
  readonly needs?: readonly string[];
  /** Whether it refuses to serve as root. */
  readonly isUnprivileged?: true;
  /** Makes its configuration listen for HTTP/2 without TLS; undefined: it cannot. */
  readonly overHttp2?: (text: string) => string;
};

const nginxOverHttp2 = (text: string): string => text.replace(/(listen 127\.0\.0\.1:\d+);/, '$1 http2;');

const TOLLGATE_NGINX = ['http', 'server', 'forward'].map((name) => `tollgate-nginx/${name}.conf`);
const TOLLGATE_CADDY = ['ask', 'failed'].map((name) => `tollgate-caddy/${name}.caddy`);

/** A worker of nginx has to write into the folder of the test. */
const USER = process.getuid?.() === 0 ? 'user root; ' : '';
const NGINX = `${USER}daemon off; pid nginx.pid; error_log stderr error;`;

/** Debian's places. LuaSocket is a package of its own there. */
const APACHE_MODULES = '/usr/lib/apache2/modules';
const LUA_SOCKET = '/usr/share/lua/5.3/socket/http.lua';
const LOADED = ['mpm_event', 'authz_core', 'headers', 'lua', 'proxy', 'proxy_http', 'setenvif', 'unique_id'];
const NOBODY = 65_534;

/** What the main configuration of an Apache says before the shipped one comes. */
function apacheLines(folder: string): string[] {
  return [
    ...LOADED.map((name) => `LoadModule ${name}_module ${APACHE_MODULES}/mod_${name}.so`),
    ...[`PidFile ${folder}/apache.pid`, `ErrorLog ${folder}/error.log`, 'LogLevel error', 'ServerName 127.0.0.1'],
    ...[`DefaultRuntimeDir ${folder}`, `Mutex file:${folder} default`],
  ];
}

export const PROGRAMS: readonly ProxyProgram[] = [
  {
    ...{ name: 'nginx auth_request', dialect: 'nginx', program: 'nginx', files: ['nginx.conf', ...TOLLGATE_NGINX] },
    args: (folder, file) => ['-p', folder, '-c', file, '-g', NGINX],
    overHttp2: nginxOverHttp2,
  },
  {
    ...{ name: 'nginx X-Accel', dialect: 'nginx_accel', program: 'nginx', files: ['nginx-accel.conf'] },
    args: (folder, file) => ['-p', folder, '-c', file, '-g', NGINX],
    overHttp2: nginxOverHttp2,
  },
  {
    ...{ name: 'Caddy', dialect: 'caddy', program: 'caddy', files: ['Caddyfile', ...TOLLGATE_CADDY] },
    args: (_, file) => ['run', '--config', file, '--adapter', 'caddyfile'],
    overHttp2: (text) => text.replace(/^\{$/m, '{\n\tservers {\n\t\tprotocols h1 h2 h2c\n\t}'),
  },
  {
    ...{ name: 'HAProxy', dialect: 'haproxy', program: 'haproxy', files: ['haproxy.cfg', 'haproxy.lua'] },
    args: (_, file) => ['-f', file, '-db'],
    overHttp2: (text) => text.replace(/(bind 127\.0\.0\.1:\d+)$/m, '$1 proto h2'),
  },
  {
    ...{ name: 'Apache', dialect: 'haproxy', program: 'apache2', files: ['apache.conf', 'apache.lua'] },
    ...{ needs: [`${APACHE_MODULES}/mod_lua.so`, LUA_SOCKET], isUnprivileged: true },
    args: (folder, file) => [
      ...['-d', folder, '-f', file, '-D', 'FOREGROUND'],
      ...apacheLines(folder).flatMap((line) => ['-C', line]),
    ],
  },
];

export function isInstalled({ program, needs = [] }: ProxyProgram): boolean {
  if (!needs.every((file) => existsSync(file))) return false;
  try {
    execFileSync('sh', ['-c', `command -v ${program}`], {
      stdio: 'ignore',
      env: { PATH: `${process.env['PATH']}:/usr/sbin` },
    });
    return true;
  } catch {
    return false;
  }
}

type Places = {
  readonly upstream: number;
  readonly decision: number;
  readonly secret: string;
  /** Changes the files: what a test has to notice, or how clients reach the proxy. */
  readonly edit?: (text: string) => string;
};

export type RunningProxy = { readonly port: number; readonly url: string; readonly close: () => Promise<void> };

export async function startShippedProxy(
  program: ProxyProgram,
  folder: string,
  { upstream, decision, secret, edit = (text) => text }: Places,
): Promise<RunningProxy> {
  const [port, self] = [await freePort(), await freePort()];
  mkdirSync(folder, { recursive: true });
  for (const file of program.files) {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    const text = readFileSync(path.join(SHIPPED, file), 'utf8')
      .replaceAll('127.0.0.1:3000', `127.0.0.1:${upstream}`)
      .replaceAll('127.0.0.1:8404', `127.0.0.1:${decision}`)
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)
      .replaceAll('127.0.0.1:8407', `127.0.0.1:${self}`)
      .replaceAll('http://:8080', `http://:${port}`)
      .replaceAll('change-me-change-me', secret)
      .replaceAll('/etc/apache2/tollgate', folder)
      .replace(
        /^http \{/m,
        `http { access_log off; ${TEMPORARY.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}`,
      );
    writeFileSync(path.join(folder, file), edit(text));
  }
  const owner = program.isUnprivileged === true && process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : undefined;
  if (owner !== undefined) {
    chmodSync(path.dirname(folder), 0o755);
    chownSync(folder, owner.uid, owner.gid);
  }
  const [main = ''] = program.files;
  const child = spawn(program.program, program.args(folder, path.join(folder, main)), {
    cwd: folder,
    ...owner,
    env: { PATH: `${process.env['PATH']}:/usr/sbin`, HOME: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const exited = once(child, 'exit');
  for (let tries = 0; !(await answers(port)); tries++) {
    if (child.exitCode !== null || tries > 600) throw new Error(`${program.name} did not start: ${said}`);
    await setTimeout(25);
  }
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
