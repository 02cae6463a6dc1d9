// From SQLite to PostgreSQL with money under way, over a real chain: who paid before is served afterwards, once, by the process
// that has the other store.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MAIN, NODE } from '../cli/support.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, stopSharedPostgres } from '../postgres/store.ts';
import { caughtUp, startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';

const SECRET = 'a-secret-of-the-test-of-at-least-32-bytes';
const PRICE = 100_000n;

describe.skipIf(!hasPostgres)('tollgate copy with payments under way', () => {
  const files = temporaryFolder();
  let paid: PaidTollgate;
  let after: TollgateProcess | undefined;
  const held = new Map<string, () => void>();

  beforeAll(async () => {
    paid = await startPaidTollgate({
      routes: ['* /done 0.10', '* /kept 0.10', '* /unfinished 0.10'],
      registry: `store: sqlite:data/tollgate.db, jwt: { secret: ${SECRET} }, api_keys: []`,
      more: `charges: { secrets: [${SECRET}] }`,
      handle: (request, response) => {
        request.resume();
        const { url = '' } = request;
        if (url === '/kept') held.set(url, () => response.end('what was kept'));
        else response.end(`thing of ${url}`);
      },
    });
  }, 180_000);
  afterAll(async () => {
    await after?.kill();
    await paid?.stop();
    files.remove();
    await stopSharedPostgres();
  });

  /** Pays with POST (settled before it is forwarded) and hangs up before the answer is there. */
  const leave = async (target: string, credential: string): Promise<void> => {
    const socket = connect({ host: '127.0.0.1', port: paid.tollgate().port('proxy') });
    socket.on('error', () => undefined);
    socket.write(
      `POST ${target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nPAYMENT-SIGNATURE: ${credential}\r\n\r\n`,
    );
    const answer = await until(`${target} was asked for`, async () => held.get(target), 60_000);
    socket.resetAndDestroy();
    await caughtUp(paid.url('/free'));
    answer();
    const store = new DatabaseSync(path.join(path.dirname(paid.config), 'data/tollgate.db'), { readOnly: true });
    const count = store.prepare('SELECT count(*) AS kept FROM charge_answers');
    await until('it is kept', async () => count.get()?.['kept'] === 1, 60_000);
    store.close();
  };

  test('behaviour: after a copy to PostgreSQL a kept answer is replayed, an unfinished charge ends, a delivered one is not again', async () => {
    const sign = async (target: string): Promise<string> => paid.sign(await paid.quote(target, 'POST'));
    const [done, kept, unfinished] = [await sign('/done'), await sign('/kept'), await sign('/unfinished')];
    expect((await paid.pay('/done', done, { method: 'POST' })).status).toBe(200);
    await leave('/kept', kept);
    await paid.restart({ TOLLGATE_TEST_STOP_AT: 'after_settle_started' });
    void paid.pay('/unfinished', unfinished, { method: 'POST' }).catch(() => undefined);
    await paid.tollgate().line(({ msg }) => msg === 'stopped for a test');
    await paid.tollgate().kill();

    const text = readFileSync(paid.config, 'utf8');
    const to = files.write('to.yaml', text.replace('sqlite:data/tollgate.db', `"${await freshDatabase()}"`));
    const run = promisify(execFile);
    const { stdout } = await run(NODE, [MAIN, 'copy', paid.config, to], { cwd: path.dirname(paid.config) });
    expect(stdout).toMatch(/^charges +3 /m);
    expect(stdout).toMatch(/^charge_answers +1 /m);
    after = await startProcess({ args: ['serve', '-c', to], listeners: ['proxy', 'registry', 'admin'] });

    const asked = paid.upstream.seen.length;
    const pay = async (target: string, credential: string): Promise<readonly [number, string]> => {
      const response = await fetch(`${after?.url('proxy')}${target}`, {
        method: 'POST',
        headers: { 'payment-signature': credential },
      });
      return [response.status, await response.text()];
    };
    expect(await pay('/kept', kept)).toEqual([200, 'what was kept']);
    expect(paid.upstream.seen.length).toBe(asked);
    expect(
      await until(
        'its lease is over',
        async () => {
          const answer = await pay('/unfinished', unfinished);
          return answer[0] === 409 ? undefined : answer;
        },
        60_000,
      ),
    ).toEqual([200, 'thing of /unfinished']);
    expect((await pay('/done', done))[0]).toBe(402);
    expect(paid.upstream.seen.length).toBe(asked + 1);
    expect(await paid.earned()).toBe(3n * PRICE);
    await expect(paid.restart()).rejects.toThrow(/was copied to postgres:/);
  }, 180_000);
});
