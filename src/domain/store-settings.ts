// The place of a store: what the configuration says of it and what the store's folder is given. Who holds settings asks
// the functions below what a kind of store can, and never which kind it is; who holds an open place asks `StorePlace`.

export type StoreSettings = SqliteSettings | PostgresSettings;

type SqliteSettings = {
  readonly kind: 'sqlite';
  /** Name for people. */
  readonly name: string;
  readonly file: string;
};

export type PostgresSettings = {
  readonly kind: 'postgres';
  /** Name for people; it holds no secret. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  /** `file`: read again for each connection. */
  readonly password: { readonly value: string } | { readonly file: string } | undefined;
  readonly tls: { readonly mode: 'verify' | 'require' | 'off'; readonly caFile: string | undefined };
  readonly schema: string;
  /** That write charges. */
  readonly connections: number;
  readonly timeoutMs: number;
  readonly pooler: boolean;
};

/** File that holds the store. Undefined: it is elsewhere, and processes that share it have no folder in common. */
export function storeFile(settings: StoreSettings): string | undefined {
  switch (settings.kind) {
    case 'sqlite':
      return settings.file;
    case 'postgres':
      return undefined;
    default:
      return settings satisfies never;
  }
}

/** Settings by which each of many workers opens the store itself. Undefined: it serves one process, which writes for them. */
export function workerStore(settings: StoreSettings): StoreSettings | undefined {
  switch (settings.kind) {
    case 'sqlite':
      return undefined;
    case 'postgres':
      // Many processes: each has one connection that writes.
      return { ...settings, connections: 1 };
    default:
      return settings satisfies never;
  }
}
