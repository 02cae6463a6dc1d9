// Whether all registries on one store go by the same settings. Each writes a digest of its own over the last one's, and
// hears when another registry does. A difference is told once for each digest, by both registries.
import { inTransaction } from './connection.ts';
import type { CommonSettings, Store } from '../ports.ts';
import type { Row } from '../rows.ts';
import type { Links } from './links.ts';
import { createAsk } from './route-store.ts';
import type { ChangeWatch } from './change-watch.ts';

const COLUMNS: Readonly<Record<keyof CommonSettings, string>> = {
  receivers: 'receivers_sha256',
  api_keys: 'api_keys_sha256',
  webhooks: 'webhooks_sha256',
};
const NAMES = ['receivers', 'api_keys', 'webhooks'] as const;

export function createCommonSettings(links: Links, watch: ChangeWatch): NonNullable<Store['share']> {
  const { schema, settings } = links;
  const ask = createAsk(links, 'change');
  const columns = NAMES.map((name) => COLUMNS[name]).join(', ');
  const last = `SELECT ${columns} FROM ${schema}.meta FOR UPDATE`;
  const values = NAMES.map((_, index) => `$${index + 1}::text`).join(', ');
  const write = `UPDATE ${schema}.meta SET (${columns}) = ROW (${values})`;
  let stop = (): void => undefined;
  let before: CommonSettings | undefined;
  return async (own, differs) => {
    const told = new Map<string, unknown>();
    const compare = (row: Row, mine?: CommonSettings): void => {
      for (const name of NAMES) {
        const said = row[COLUMNS[name]];
        if (said === null || said === own[name] || said === mine?.[name] || said === told.get(name)) continue;
        told.set(name, said);
        differs(name);
      }
    };
    stop();
    await ask((session) =>
      inTransaction(session, settings(), async () => {
        const { rows } = await session.query({ name: 'tollgate_settings', text: last }, []);
        // A setting that this process wrote itself is no other's word.
        compare(rows[0] ?? {}, before);
        const said = NAMES.map((name) => own[name]);
        await session.query({ name: 'tollgate_settings_write', text: write }, said);
      }),
    );
    before = own;
    stop = watch.settings((row) => compare(row));
  };
}
