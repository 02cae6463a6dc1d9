// The lock of a SQLite store: for its owner's eyes alone, and told of a holder that lives.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lockStore } from '../../src/registry/store/sqlite/lock.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-lock-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const modeOf = (name: string): number => statSync(join(folder, name)).mode & 0o777;
const holderOf = (pid: number, host = hostname()) => ({ pid, host, started: '2026-01-01T00:00:00.000Z' });

/** The id of a process that has ended. */
function deadPid(): number {
  return spawnSync(process.execPath, ['--version']).pid;
}

test('attack: nobody but its owner can open the lock of a store, nor look into a folder that was made for it', () => {
  const file = join(folder, 'made/for/it/tollgate.db');
  lockStore(file, holderOf(process.pid)).release();
  expect(modeOf('made/for/it/tollgate.db.lock')).toBe(0o600);
  expect(modeOf('made/for/it')).toBe(0o700);
});

test('attack: a lock that an earlier version left open to all is closed; a folder that was there stays as it is', () => {
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, 't.db.lock'), '');
  chmodSync(join(folder, 't.db.lock'), 0o644);
  lockStore(join(folder, 't.db'), holderOf(process.pid)).release();
  expect(modeOf('t.db.lock')).toBe(0o600);
  expect(statSync(folder).mode & 0o777).toBe(0o755);
});

test('refuses: a lock that another program holds is not said to be held by a process that has ended', () => {
  const file = join(folder, 't.db');
  const pid = deadPid();
  lockStore(file, holderOf(pid)).release();
  const reader = new DatabaseSync(`${file}.lock`, { readOnly: true });
  try {
    reader.exec('BEGIN');
    reader.prepare('SELECT * FROM holder').all();
    expect(() => lockStore(file, holderOf(process.pid), 10)).toThrow(
      new RegExp(`^The lock ${file}.lock is held by another program (?!.*${pid}).*end that program`),
    );
  } finally {
    reader.close();
  }
  lockStore(file, holderOf(process.pid)).release();
});

test('refuses: a holder that lives, or is of another machine, is named', () => {
  const file = join(folder, 't.db');
  const lock = lockStore(file, holderOf(process.pid));
  expect(() => lockStore(file, holderOf(1), 10)).toThrow(`is served by process ${process.pid} on ${hostname()}`);
  lock.release();
  const pid = deadPid();
  const elsewhere = lockStore(file, holderOf(pid, 'elsewhere.example'));
  expect(() => lockStore(file, holderOf(1), 10)).toThrow(`is served by process ${pid} on elsewhere.example`);
  elsewhere.release();
});
