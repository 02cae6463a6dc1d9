// PgBouncer in transaction mode before a test's database: a program of the machine, named by a variable. It is not part of
// `npm test`.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { until } from '../support/paid-tollgate.ts';
import { asWhom, own } from './cluster.ts';
import { freePort } from '../support/free-port.ts';

/** Its libraries may lie beside it, as unpacked from a package. */
const PROGRAM = process.env['TOLLGATE_TEST_PGBOUNCER'];
/** Whether tests reach their databases through it. */
export const isPooled = PROGRAM !== undefined;

export type Pooler = { readonly port: number; readonly close: () => Promise<void> };

export async function startPooler(target: number): Promise<Pooler> {
  if (PROGRAM === undefined) throw new Error('there is no pooler');
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-pooler-'));
  const port = await freePort();
  const users = path.join(folder, 'users.txt');
  const file = path.join(folder, 'pgbouncer.ini');
  writeFileSync(users, '"tollgate" ""\n');
  const settings = {
    ...{ listen_addr: '127.0.0.1', listen_port: port, unix_socket_dir: '', auth_type: 'trust', auth_file: users },
    ...{ pool_mode: 'transaction', max_client_conn: 500, default_pool_size: 10, server_login_retry: 1 },
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  writeFileSync(file, `[databases]\n* = host=127.0.0.1 port=${target}\n[pgbouncer]\n${lines.join('\n')}\n`);
  for (const each of [folder, users, file]) own(each, false);
  const child = spawn(PROGRAM, [file], {
    ...asWhom(),
    cwd: '/',
    env: { LD_LIBRARY_PATH: path.resolve(PROGRAM, '../../lib/x86_64-linux-gnu') },
    stdio: 'ignore',
  });
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await until('the pooler listens', () => listens(port));
  return {
    port,
    close: async () => {
      child.kill('SIGKILL');
      await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}
