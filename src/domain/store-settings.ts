// The place of a store: what the configuration says of it and what the store's folder is given.

export type StoreSettings =
  /** `name`: for people. */
  { readonly kind: 'sqlite'; readonly name: string; readonly file: string } | PostgresSettings;

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
