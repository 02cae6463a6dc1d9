// PostgreSQL over TLS: what each mode takes for the database, on a server that takes nothing unencrypted.
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PostgresSettings } from '../../src/domain/store-settings.ts';
import { StoreRefused } from '../../src/registry/store/ports.ts';
import { postgresPlace } from '../../src/registry/store/postgres/place.ts';
import { CERTIFICATE, KEY } from '../support/certificate.ts';
import { temporaryFolder } from '../support/process.ts';
import { until } from '../support/paid-tollgate.ts';
import { own } from './cluster.ts';
import { hasPostgres, startPostgres, type PostgresServer } from './server.ts';
import { settingsOf, silent } from './store.ts';

describe.skipIf(!hasPostgres)('PostgreSQL over TLS', () => {
  let server: PostgresServer;
  let url: string;
  const files = temporaryFolder();

  beforeAll(async () => {
    // Another address of this machine, which its certificate does not name.
    server = await startPostgres({ settings: { listen_addresses: '127.0.0.1,127.0.0.2' } });
    url = await server.createDatabase();
    for (const [name, text] of [
      ['server.key', KEY],
      ['server.crt', CERTIFICATE],
    ] as const) {
      const file = path.join(server.folder, name);
      writeFileSync(file, text);
      chmodSync(file, 0o600);
      own(file, false);
    }
    const access = path.join(server.folder, 'pg_hba.conf');
    const only = 'hostssl all secret all trust\nhost all secret all reject\n';
    writeFileSync(access, `${only}host all all 127.0.0.2/32 trust\n${readFileSync(access, 'utf8')}`);
    await server.query('ALTER SYSTEM SET ssl = on');
    await server.query('CREATE ROLE secret LOGIN SUPERUSER');
    await server.query('SELECT pg_reload_conf()');
    await until('it speaks TLS', async () => (await server.query('SHOW ssl'))[0]?.['ssl'] === 'on');
  });
  afterAll(async () => {
    await server?.close();
    files.remove();
  });

  type Tls = PostgresSettings['tls'];
  const connect = async (tls: Tls, host = '127.0.0.1'): Promise<string> => {
    const settings = settingsOf(url, { host, tls, user: 'secret', timeoutMs: 1500, connections: 1 });
    const store = postgresPlace(settings).openCharges({ now: Date.now, log: silent });
    try {
      await store.check();
      return 'served';
    } catch (error) {
      return error instanceof StoreRefused ? error.message : 'away';
    } finally {
      await store.close();
    }
  };
  const certificate = (): string => files.write('ca.pem', CERTIFICATE);
  /** Whatever keeps it for a while is no answer. */
  const answerOf = (tls: Tls, host?: string): Promise<string> =>
    until('there is an answer', async () => {
      const answer = await connect(tls, host);
      return answer !== 'away' && answer;
    });

  test('behaviour: TLS mode verify takes a certificate of its authority, with its name; require takes any', async () => {
    const known = { mode: 'verify', caFile: certificate() } as const;
    expect(await answerOf(known)).toBe('served');
    expect(await answerOf({ mode: 'require', caFile: undefined }, '127.0.0.2')).toBe('served');
  });

  test('attack: TLS mode verify takes neither an authority that is not its own nor another name; off is not let in', async () => {
    const [unknown, renamed, off] = await Promise.all([
      answerOf({ mode: 'verify', caFile: undefined }),
      answerOf({ mode: 'verify', caFile: certificate() }, '127.0.0.2'),
      answerOf({ mode: 'off', caFile: undefined }),
    ]);
    expect(unknown).toMatch(/self-signed certificate/);
    expect(renamed).toMatch(/does not match certificate's altnames.*127\.0\.0\.2/);
    expect(off).toMatch(/pg_hba.conf rejects connection/);
  });
});
