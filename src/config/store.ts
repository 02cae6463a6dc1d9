// The keys of a store: a SQLite file, or a schema of a PostgreSQL database. One text is short for its `url`. A URL of
// PostgreSQL is taken apart here: no part of it reaches the driver unread.
import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';
import type { PostgresSettings, StoreSettings } from '../domain/store-settings.ts';
import { isLoopback } from './addresses.ts';
import { choice, count, duration, flag, text } from './fields.ts';
import { key, section } from './keys.ts';
import { isMap, valueAt, type Issue, type Path } from './problems.ts';

/** Paths of stores in a configuration. */
const PLACES: readonly Path[] = [
  ['registry', 'store'],
  ['charges', 'store'],
];
const KINDS = 'sqlite: and a file, such as sqlite:data/tollgate.db, or postgres://user@host/database';
const PORT = 5432;
/** Size of a kept response in bytes, at most. */
const MOST_KEPT = 1_048_576;

/** Section of a store; a relative file is relative to `folder`. `otherwise` is the store if none is named. */
export function store(folder: string) {
  const named = text(KINDS, (value) => /^sqlite:(?!:)[^\0?]+$/.test(value) || isPostgres(value));
  return section({
    url: key(
      'url',
      named,
      'The SQLite file or PostgreSQL database; `store: URL` is the short form. Any number of processes share a PostgreSQL database.',
    ),
    password: key(
      'password',
      text('the password of the database user').optional(),
      'The password of the database user.',
    ),
    password_file: key(
      'passwordFile',
      text('a file name')
        .transform((file) => resolve(folder, file))
        .optional(),
      'A file with that password, read again for every connection.',
    ),
    tls: key(
      'tls',
      section({
        mode: key(
          'mode',
          choice(['verify', 'require', 'off']).optional(),
          '`verify` checks the certificate, `require` encrypts without a check. Left out: verify; on loopback and Unix sockets off.',
        ),
        ca_file: key(
          'caFile',
          text('a file name')
            .transform((file) => resolve(folder, file))
            .optional(),
          'A file of CA certificates to check by. Left out: those of the system.',
        ),
      }).prefault({}),
      'How PostgreSQL is reached.',
    ),
    schema: key(
      'schema',
      // PostgreSQL refuses to make a schema whose name begins with pg_.
      text('a name of up to 48 small letters, digits and underscores that does not begin with pg_', (value) =>
        /^(?!pg_)[a-z_][a-z0-9_]{0,47}$/.test(value),
      ).default('tollgate'),
      'The schema in that database. Nothing else may use it.',
    ),
    connections: key(
      'connections',
      count(1, 16).default(2),
      'Connections that write charges; up to two more read and listen.',
    ),
    timeout: key(
      'timeoutMs',
      duration(1000, 60_000).prefault('5s'),
      'How long a call may take, with the wait for a connection.',
    ),
    pooler: key('pooler', flag().default(false), 'True: the database is behind a pooler in transaction mode.'),
  }).transform((values, context): StoreSettings => {
    const { url } = values;
    if (!url.startsWith('postgres')) {
      const file = resolve(folder, url.slice('sqlite:'.length));
      return { kind: 'sqlite', name: file, file };
    }
    const where = readUrl(url);
    if (typeof where === 'string') {
      context.addIssue({ code: 'custom', path: ['url'], message: where });
      return z.NEVER;
    }
    const given = [where.password, values.password, values.passwordFile].filter((each) => each !== undefined);
    if (given.length > 1) {
      const message = 'has a password in two places; keep one of that in the URL, password and password_file';
      context.addIssue({ code: 'custom', path: ['url'], message });
    }
    const { host, port, user, database } = where;
    const value = where.password ?? values.password;
    const isNear = host.startsWith('/') || isLoopback(host);
    return {
      kind: 'postgres',
      name: `postgres://${host.startsWith('/') ? '' : host}/${database} (${values.schema})`,
      ...{ host, port, user, database, schema: values.schema },
      password:
        value !== undefined ? { value } : values.passwordFile === undefined ? undefined : { file: values.passwordFile },
      tls: { mode: values.tls.mode ?? (isNear ? 'off' : 'verify'), caFile: values.tls.caFile },
      ...{ connections: values.connections, timeoutMs: values.timeoutMs, pooler: values.pooler },
    };
  });
}

/** Replaces each text that names a store in `data` (changing it) by the section that it is short for. */
export function expandStores(data: Readonly<Record<string, unknown>>): { readonly written: (issue: Issue) => Issue } {
  const expanded = PLACES.filter((path) => {
    const value = valueAt(data, path);
    const holder = valueAt(data, path.slice(0, -1));
    if (value === undefined || isMap(value) || !isMap(holder)) return false;
    holder[String(path.at(-1))] = { url: value };
    return true;
  });
  const written = (issue: Issue): Issue => {
    const path = expanded.find((each) => each.every((step, index) => step === issue.path[index]));
    return path === undefined ? issue : { ...issue, path };
  };
  return { written };
}

/**
 * Finds what PostgreSQL needs to be configured, because nothing random is made beside it; and what it does not keep.
 */
export function storeIssues(raw: Readonly<Record<string, unknown>>): Issue[] {
  const inRegistry = isPostgres(valueAt(raw, ['registry', 'store', 'url']));
  const needed: readonly (readonly [Path, string, boolean])[] = [
    [['registry', 'jwt'], 'a dashboard token is good at every process on this store: write jwt', inRegistry],
    [
      ['charges', 'secrets'],
      'what one process quotes is paid at another: write secrets or secrets_file',
      inRegistry && (isMap(raw['proxy']) || Array.isArray(raw['decision'])),
    ],
  ];
  const issues = needed.flatMap(([path, why, isNeeded]) =>
    isNeeded && valueAt(raw, path) === undefined ? [{ path, message: `is missing; with PostgreSQL ${why}` }] : [],
  );
  const kept = valueAt(raw, ['charges', 'keep_response']);
  if ((inRegistry || isPostgres(valueAt(raw, ['charges', 'store', 'url']))) && Number(kept) > MOST_KEPT)
    issues.push({
      path: ['charges', 'keep_response'],
      message: `is more than PostgreSQL keeps; write at most ${MOST_KEPT}`,
    });
  return issues;
}

export function storeWarnings(named: StoreSettings | undefined, path: string): string[] {
  if (named?.kind !== 'postgres' || named.host.startsWith('/') || isLoopback(named.host)) return [];
  if (named.tls.mode === 'off')
    return [`${path}.tls: what is paid for travels unencrypted to the database; write mode: verify`];
  return named.tls.mode === 'require'
    ? [`${path}.tls: any server that answers is taken for the database; write mode: verify`]
    : [];
}

function isPostgres(value: unknown): boolean {
  return typeof value === 'string' && /^postgres(ql)?:\/\//.test(value);
}

type ConnectionTarget = Pick<PostgresSettings, 'host' | 'port' | 'user' | 'database'> & {
  readonly password: string | undefined;
};

/** A sentence if it cannot be used. */
function readUrl(value: string): ConnectionTarget | string {
  // The URL parser takes backslashes, tabs and missing slashes for what they are not.
  const parsed = /^postgres(ql)?:\/\/[^\s\\#]*$/.test(value) && URL.canParse(value) ? new URL(value) : undefined;
  if (parsed === undefined) return `is not ${KINDS}`;
  const names = [...parsed.searchParams.keys()];
  if (names.some((name) => name.startsWith('ssl')))
    return 'says how to use TLS; write tls: { mode: verify } beside url instead';
  if (names.some((name) => name !== 'host'))
    return 'has parameters; only host, a folder of a Unix socket, may stand there';
  const folder = parsed.searchParams.get('host');
  const host = folder ?? decodeURIComponent(parsed.hostname.replace(/^\[|\]$/g, ''));
  const database = decodeURIComponent(parsed.pathname.slice(1));
  if (database === '' || database.includes('/')) return 'names no database; write postgres://user@host/database';
  if (host === '' || (folder !== null && (parsed.hostname !== '' || !folder.startsWith('/'))))
    return 'names no host; write postgres://user@host/database, or postgres:///database?host=/run/postgresql';
  return {
    ...{ host, database, port: parsed.port === '' ? PORT : Number(parsed.port) },
    user: parsed.username === '' ? userInfo().username : decodeURIComponent(parsed.username),
    password: parsed.password === '' ? undefined : decodeURIComponent(parsed.password),
  };
}
