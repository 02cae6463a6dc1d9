// The kinds of store: the one place that knows which there are. A kind is loaded when a configuration names it, so that a
// command without a store starts without one.
import type { StoreSettings } from '../../domain/store-settings.ts';
import type { StorePlace } from './ports.ts';

export async function storeAt(named: StoreSettings): Promise<StorePlace> {
  if (named.kind === 'postgres') {
    const { postgresPlace } = await import('./postgres/place.ts');
    return postgresPlace(named);
  }
  const { sqlitePlace } = await import('./sqlite/place.ts');
  return sqlitePlace(named.file);
}
