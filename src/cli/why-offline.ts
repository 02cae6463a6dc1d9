// Answers `tollgate why` without a running process: from the ledger in the store, read only, and from the id itself.
import type { LoadedConfig } from '../config/config.ts';
import { resolveSecrets } from '../config/first-start.ts';
import { createQuotes } from '../domain/payment/quote.ts';
import { createRandom, systemClock } from '../host/clock.ts';
import { storeAt } from '../registry/store/store-kinds.ts';
import type { WhyReport } from '../registry/charges/charge-schemas.ts';
import type { Io } from './command.ts';
import { readOfflineRoutes } from './offline-routes.ts';
import { isKnownHere, talk } from './configuration.ts';

/** A sentence if it cannot be said. */
export async function whyOffline(id: string, config: LoadedConfig, io: Io): Promise<WhyReport | string> {
  const named = config.registry?.store ?? config.charges.store;
  const store = named && (await storeAt(named));
  if (config.registry !== undefined && store?.exists() !== true)
    return 'There is no store yet; the first start makes it.';
  const resolved = resolveSecrets(config, { random: createRandom(), log: talk(io) });
  if (!resolved.ok) return resolved.problem;
  const { charges } = resolved.config;
  const secrets = charges.secrets.filter((secret) => isKnownHere(secret, io));
  const quotes =
    secrets.length === 0
      ? { explain: () => ({ kind: 'foreign' }) as const }
      : createQuotes({ secrets, ttlMs: charges.quoteTtlMs, nonce: () => '' });
  const offline = config.registry === undefined ? undefined : await readOfflineRoutes(config);
  const routes = new Map(offline?.ok === true ? offline.routes.map((route) => [route.id, route]) : []);
  const { explainWhy } = await import('../compose/why.ts');
  const ledger = store?.exists() === true ? store.openCharges({ now: Date.now, log: talk(io) }) : undefined;
  try {
    return await explainWhy(id, {
      search: ledger?.search,
      findByChargeId: ledger?.get,
      refusals: undefined,
      quotes,
      quoteTtlMs: charges.quoteTtlMs,
      routeOf: (routeId) => routes.get(routeId),
      clock: systemClock,
    });
  } finally {
    await ledger?.close();
  }
}
