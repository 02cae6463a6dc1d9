// A lenient HTTP parser would void every rule about framing: no command that listens may run with one, however Node was
// told. Real processes, because only they have Node's options; the header limits of a listener do not follow them either.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openRaw } from '../support/raw-client.ts';
import { BARE_ENV, MAIN } from './support.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const NODE = join(ROOT, 'node_modules/.bin/node');
const LISTENING: Record<string, readonly string[]> = {
  serve: ['--upstream', 'http://127.0.0.1:1', '--pay-to', `0x${'1'.repeat(40)}`],
  demo: ['demo'],
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-'));
  writeFileSync(join(folder, 'node.config.json'), '{"nodeOptions":{"insecure-http-parser":true}}');
  writeFileSync(join(folder, 'lenient.env'), 'NODE_OPTIONS="--insecure-http-parser"\n');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function run(
  options: readonly string[],
  argv: readonly string[],
  env: Record<string, string>,
): Promise<{ code: number | null; stderr: string }> {
  const child = spawn(NODE, [...options, MAIN, ...argv], {
    cwd: folder,
    env: { ...BARE_ENV, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: 30_000,
    killSignal: 'SIGKILL',
  });
  const [stderr] = await Promise.all([text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stderr };
}

describe.concurrent('a lenient parser', () => {
  test.each<[how: string, command: keyof typeof LISTENING, options: string[], env: Record<string, string>]>([
    ['the flag', 'demo', ['--insecure-http-parser'], {}],
    ['the flag with underscores', 'serve', ['--insecure_http_parser'], {}],
    ['the flag with the value false, which Node ignores', 'serve', ['--insecure-http-parser=false'], {}],
    ['NODE_OPTIONS', 'demo', [], { NODE_OPTIONS: '--no-warnings --insecure-http-parser' }],
    ['NODE_OPTIONS with quotes and a backslash inside', 'serve', [], { NODE_OPTIONS: '"--insecure\\-http"_parser' }],
    ['a file for the environment', 'serve', ['--env-file=lenient.env'], {}],
    ['a configuration file of Node', 'serve', ['--experimental-config-file=node.config.json'], {}],
    ['the default configuration file of Node', 'demo', ['--experimental-default-config-file'], {}],
  ])('attack: %s: %s does not start', async (_how, command, options, env) => {
    const { code, stderr } = await run(options, LISTENING[command] ?? [], env);
    expect(code).toBe(64);
    expect(stderr).toContain('--insecure-http-parser, which lets requests through');
  });

  test('behaviour: every command that can start a listener asks whether the parser is lenient', () => {
    const folderOfCommands = join(ROOT, 'src/cli');
    const listening = readdirSync(folderOfCommands)
      .filter((name) => name.endsWith('.ts'))
      .filter((name) => /startTollgate\(|createListener\(/.test(readFileSync(join(folderOfCommands, name), 'utf8')));
    expect(listening.map((name) => name.replace('.ts', '')).toSorted()).toEqual(Object.keys(LISTENING).toSorted());
    for (const name of listening)
      expect(readFileSync(join(folderOfCommands, name), 'utf8')).toContain('await refuseLenientParser(io)');
  });

  test('attack: --max-http-header-size neither widens nor narrows the limit of a listener', async () => {
    const script = `
      import { createListener } from ${JSON.stringify(new URL('../../src/host/server.ts', import.meta.url).href)};
      import { LISTENER_REFUSALS } from ${JSON.stringify(new URL('../../src/domain/problem.ts', import.meta.url).href)};
      const log = { debug() {}, info() {}, warn() {}, error() {}, enabled: () => false };
      const listener = createListener(
        { name: 'child', listen: { host: '127.0.0.1', port: 0 }, limits: { headers: 8192, connections: 10 }, timeouts: { headersMs: 5000, idleMs: 5000 }, refusals: LISTENER_REFUSALS, log },
        { request: (req, res) => void res.end('accepted') },
      );
      console.log((await listener.start()).port);
    `;
    for (const size of ['200', '1000000']) {
      const options = [`--max-http-header-size=${size}`, '--input-type=module', '-e', script];
      const child = spawn(process.execPath, options, { env: {}, stdio: ['ignore', 'pipe', 'inherit'] });
      try {
        const [port] = (await once(child.stdout, 'data')) as [Buffer];
        for (const [bytes, status] of [
          [7000, 200],
          [9000, 431],
        ] as const) {
          const client = await openRaw(Number(port.toString()));
          client.send(`GET / HTTP/1.1\r\nHost: h\r\nX-Fill: ${'x'.repeat(bytes)}\r\n\r\n`);
          expect([size, bytes, (await client.answer()).status]).toEqual([size, bytes, status]);
          client.close();
        }
      } finally {
        const gone = once(child, 'exit');
        child.kill('SIGKILL');
        await gone;
      }
    }
  });
});
