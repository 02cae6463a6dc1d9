// A SQLite store in which everything occurs that a store may hold, for what moves stores.
import { createLedger, type Ledger } from '../../src/domain/payment/ledger.ts';
import type { ChargeEvent } from '../../src/domain/payment/transition.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { createRandom } from '../../src/host/clock.ts';
import { createApiKey } from '../../src/registry/auth/api-keys.ts';
import { sqlitePlace } from '../../src/registry/store/sqlite/place.ts';
import type { Store, StoredRoute } from '../../src/registry/store/ports.ts';
import { claimOf, OTHER_ROUTE, proofOf, requestOf, ROUTE_ID } from '../cases/claims.ts';
import { storedRoute } from '../cases/routes.ts';
import { hourOf, minuteOf } from '../contract/totals.ts';
import { silent } from './store.ts';

export const ACTOR = { owner: 'local-run/one' };
const LEASE_MS = 10_000;
/** Bytes of a kept answer that no text holds. */
const BODY = Uint8Array.from({ length: 300 }, (_, index) => index % 256);

export const openSqlite = (file: string): Promise<Store> =>
  sqlitePlace(file).open({ random: createRandom(), now: Date.now, log: silent, as: 'command' });

export async function fillStore(file: string, charges: number): Promise<void> {
  const store = await openSqlite(file);
  try {
    await writeRoutes(store);
    const made = { random: createRandom(), now: Date.now };
    await createApiKey(store.apiKeys, { name: 'kept', scopes: ['sdk', 'ledger'] }, made);
    const { id } = (await createApiKey(store.apiKeys, { name: 'revoked', scopes: ['sdk'] }, made)).stored;
    await store.apiKeys.revoke(id, new Date().toISOString());
    await store.apiKeys.use('configuration:sidecar ö', 1_800_000_000_000);
    const ledger = createLedger(store.charges, SPELLING);
    for (let first = 0; first < charges; first += 500)
      await Promise.all(
        Array.from({ length: Math.min(500, charges - first) }, (_, index) => writeCharge(ledger, first + index)),
      );
    await writeCounts(store);
  } finally {
    await store.close();
  }
}

async function writeCounts({ charges: { totals } }: Store): Promise<void> {
  const startMs = Date.now();
  const rows = [
    minuteOf(startMs, { free: 3, paid: 2, error: 1 }, [0, 4, 19]),
    ...[ROUTE_ID, OTHER_ROUTE, 'other'].map((routeId) => hourOf(startMs, routeId, { paid: 1, released: 2 })),
  ];
  await totals.add({ source: 'sidecar', seq: 2, rows, status: '{"name":"edgeö"}' });
}

async function writeRoutes({ routes }: Store): Promise<void> {
  const insert = async (rule: string, rest: Parameters<typeof storedRoute>[1]): Promise<void> => {
    const route = storedRoute(rule, rest);
    await routes.write([{ kind: 'insert', route, key: route.pattern }], { maxRoutes: 99 });
  };
  await insert('GET /reports/* 0.10', { id: ROUTE_ID, name: 'Repörts \0 "quoted" \\ 📈' });
  await insert('* /users/:id 0.02', { id: OTHER_ROUTE, status: 'paused', receiverConfigId: 'default' });
  await insert('GET /gone 1', {});
  const [first, , gone] = (await routes.load()).routes as [StoredRoute, StoredRoute, StoredRoute];
  await routes.write(
    [
      { kind: 'update', route: { ...first, amount: '0.20', writtenBy: 'dashboard:a' }, key: first.pattern, was: first },
      { kind: 'delete', was: gone, by: 'dashboard:a', at: '2026-01-02T00:00:00.000Z' },
    ],
    { maxRoutes: 99 },
  );
}

/** Every eighth one stands as far as the others of its kind. */
async function writeCharge(ledger: Ledger, n: number): Promise<void> {
  const claim = claimOf(n, {
    route: { id: n % 3 === 0 ? OTHER_ROUTE : ROUTE_ID, method: 'GET', pattern: '/reports/*' },
    customerId: n % 5 === 0 ? `cüstomer ${n}` : null,
    request: requestOf('GET', `/reports/${n}`),
    deadline: n % 7 === 0 ? null : 4_000_000_000n,
    amount: n % 11 === 0 ? 10n ** 60n : 100_000n,
  });
  const rules = { ...ACTOR, leaseMs: LEASE_MS, maxUnsettledPerPayer: 99 };
  const { kind } = await ledger.claim(claim, rules);
  if (kind !== 'claimed') throw new Error(`charge ${n} was not claimed: ${kind}`);
  const started: ChargeEvent = { kind: 'settle_started', via: 'https://x402.org/facilitator', leaseMs: LEASE_MS };
  const settled: ChargeEvent = {
    kind: 'settled',
    proof: proofOf(claim, n % 2 === 0 ? { logIndex: n } : {}),
    leaseMs: LEASE_MS,
  };
  const kept: ChargeEvent = {
    kind: 'answer_kept',
    answer: { status: 200, headers: ['content-type', 'image/png', 'x-a', 'ä'], body: BODY },
    headSent: false,
  };
  const failed: ChargeEvent = { kind: 'undelivered', because: 'upstream_failed', headSent: false };
  const events: readonly (readonly ChargeEvent[])[] = [
    [started, settled, { kind: 'delivered', partial: false }],
    [started, settled, failed, { kind: 'refunded', note: 'sörry' }],
    [],
    [started],
    [started, { kind: 'settle_unknown', reason: 'timeout', lookInMs: 1000 }],
    [{ kind: 'released', reason: 'upstream_answered' }],
    [started, settled, kept],
    [started, { kind: 'failed', by: 'chain', reason: 'insufficient_funds' }],
  ];
  for (const event of events[n % events.length] ?? []) {
    const moved = await ledger.advance(claim.id, event, ACTOR);
    if (moved.kind !== 'ok') throw new Error(`charge ${n} did not move on: ${event.kind} ${moved.because}`);
  }
}
