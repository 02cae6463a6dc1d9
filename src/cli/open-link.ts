// Opens a one-time link in the browser of this user. The link is no argument of a process, which every user of the machine
// could read: the browser is given a file of this user's alone that leads on, and that is taken away again.
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { html } from '../host/html.ts';

/** Time that a browser has to read the file. */
const READ_MS = 5_000;

/** False if no browser could be started. `browser`: a program of the user's choice. */
export async function openLink(url: string, browser: string | undefined): Promise<boolean> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tollgate-desk-'));
  try {
    const file = path.join(folder, 'desk.html');
    const page = `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=${html(url)}"><a href="${html(url)}">Open the desk</a>`;
    await writeFile(file, page, { mode: 0o600 });
    const [program = '', ...args] = browser === undefined ? opener() : [browser];
    const child = spawn(program, [...args, file], { stdio: 'ignore', detached: true });
    const started = await new Promise<boolean>((resolve) => {
      child.once('spawn', () => resolve(true));
      child.once('error', () => resolve(false));
    });
    child.unref();
    if (started) await wait(READ_MS);
    return started;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function opener(): readonly string[] {
  if (process.platform === 'darwin') return ['open'];
  return process.platform === 'win32' ? ['explorer'] : ['xdg-open'];
}
