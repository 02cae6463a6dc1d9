// Chooses the kind of store by what the configuration says of it: the one place that knows which kinds there are. Each is
// loaded when it is asked for, so that a command without a store starts without one.
import type { StorePlace } from './ports.ts';

export async function storeAt({ file }: { readonly file: string }): Promise<StorePlace> {
  const { sqlitePlace } = await import('./sqlite/place.ts');
  return sqlitePlace(file);
}
