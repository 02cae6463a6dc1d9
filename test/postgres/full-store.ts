// A SQLite store in which everything occurs that a store may hold, for what moves stores.
import { createLedger, type Ledger } from '../../src/domain/payment/ledger.ts';
import type { ChargeEvent } from '../../src/domain/payment/transition.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { createRandom } from '../../src/host/clock.ts';
import { createApiKey } from '../../src/registry/auth/api-keys.ts';
import { sqlitePlace } from '../../src/registry/store/sqlite/place.ts';
import { writePassInSale, type PassInSale } from '../../src/domain/selling/pass.ts';
import type { DrawChange } from '../../src/domain/selling/pass-book.ts';
import type { Store, StoredRoute } from '../../src/registry/store/ports.ts';
import { claimOf, hash32, OTHER_ROUTE, proofOf, requestOf, ROUTE_ID, sha256 } from '../cases/claims.ts';
import { storedRoute } from '../cases/routes.ts';
import { hourOf, minuteOf, saleOf } from '../contract/totals.ts';
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
    // Events are written for endpoints that are there.
    await store.charges.webhooks.declare([{ id: 'books', types: ['charge.settled', 'charge.refunded'] }], undefined);
    await store.charges.webhooks.tell({ type: 'test', subject: '', content: '{"ä":1}', endpointId: 'books' });
    const ledger = createLedger(store.charges, SPELLING);
    for (let first = 0; first < charges; first += 500)
      await Promise.all(
        Array.from({ length: Math.min(500, charges - first) }, (_, index) => writeCharge(ledger, first + index)),
      );
    for (let n = 0; n < charges; n += PASS_EACH) await drawOn(store, n);
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
    saleOf(startMs, { kind: 'plan', subject: 'plän', detail: 'pass', requests: 3 }),
    saleOf(startMs, { kind: 'would_charge', subject: 'plän', detail: 'USD', requests: 1, amount: '12345', scale: 4 }),
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

/** One charge of so many buys a pass. */
const PASS_EACH = 16;
const DAY_MS = 86_400_000;
const TERMS: Pick<PassInSale, 'planId' | 'validMs' | 'scope' | 'first'> = {
  ...{ planId: 'plän', validMs: DAY_MS, scope: 'plan', first: '1' },
};
const SALES: readonly PassInSale[] = [
  { ...TERMS, termsId: 'hundred', kind: 'uses', uses: 100 },
  { ...TERMS, termsId: 'top-up', kind: 'credit', credit: '5.00', first: '0.25' },
  { ...TERMS, termsId: 'day', kind: 'seconds', seconds: 86_400, scope: 'route' },
  { ...TERMS, termsId: 'two', kind: 'uses', uses: 2 },
] as readonly PassInSale[];

function saleIn(n: number): PassInSale | undefined {
  return n % PASS_EACH === 0 ? SALES[(n / PASS_EACH) % SALES.length] : undefined;
}

/** Leaves draws on the pass of a charge in every state that there is, and revokes some passes. */
async function drawOn({ charges: { passes } }: Store, n: number): Promise<void> {
  const sale = saleIn(n);
  const passId = `pass_test-${n}`;
  if (sale === undefined || sale.kind === 'seconds') return;
  const { pass } = (await passes.get(passId)) ?? {};
  if (pass === undefined) throw new Error(`charge ${n} opened no pass`);
  const { planId, routeId, kind, currency } = pass;
  const draw = async (name: string, ...ends: readonly DrawChange['kind'][]): Promise<void> => {
    const named = { passId, useId: `use_${n}_${name}`, owner: `${passes.run}/${name}` };
    const key = { sha256: sha256(`${n} ${name}`), method: 'POST', targetSha256: sha256('/ä') };
    const reserve: DrawChange = {
      ...{ ...named, kind: 'reserve', leaseMs: LEASE_MS, of: { planId, routeId, kind, currency } },
      ...{ amount: kind === 'uses' ? 1n : 3n * 10n ** 16n, key: name === 'keyed' ? key : null },
    };
    await passes.change(reserve);
    for (const end of ends)
      await passes.change(
        end === 'take' ? { ...named, kind: end, amount: null } : { ...named, kind: 'give_back', because: 'left' },
      );
  };
  await draw('keyed', 'take');
  await draw('given', 'give_back');
  await draw('open');
  if (n % 5 === 0) await passes.revoke(passId, { actor: 'röot', via: 'command_line', requestId: null });
}

/** Every eighth one stands as far as the others of its kind. */
async function writeCharge(ledger: Ledger, n: number): Promise<void> {
  const sale = saleIn(n);
  const claim = claimOf(n, {
    pass: sale === undefined ? null : writePassInSale(sale),
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
  const giveBack = (part: bigint, logIndex: number | null): ChargeEvent => ({
    ...{ kind: 'refunded', note: 'too läte' },
    transfer: { transaction: hash32(0xfee000 + n), logIndex, amount: part, reason: 'too läte' },
  });
  const isGivenBack = sale === undefined ? n % PASS_EACH === 8 : sale.kind === 'seconds';
  const events: readonly (readonly ChargeEvent[])[] = [
    [
      ...[started, settled, { kind: 'delivered', partial: false } as const],
      ...(isGivenBack ? [giveBack(n % 3 === 0 ? claim.amount : 40_000n, n % 5 === 0 ? null : n)] : []),
    ],
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
