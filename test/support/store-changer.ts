// A process that changes routes, keys, sessions and charges of a store without a pause, until it is killed: `node
// store-changer.ts URL`. It says a line after each round, so that its killer knows that it works.
import { createHash, randomBytes } from 'node:crypto';
import { createRandom, systemClock } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import { createApiKey } from '../../src/registry/auth/api-keys.ts';
import { createBody } from '../../src/registry/http/schemas.ts';
import { openRoutes } from '../../src/registry/routes/registry-routes.ts';
import { openStoreAt } from './store-at.ts';
import { RECEIVERS } from '../cases/receivers.ts';

const random = createRandom();
const log = createLog('error', () => undefined, Date.now);
const store = await openStoreAt(process.argv[2] ?? '');
const routes = await openRoutes({
  ...{ store: store.routes, isShared: store.isShared, maxRoutes: 100_000, clock: systemClock, random, log },
  ...{ receivers: () => RECEIVERS, unknownReceiver: () => 'store', methods: () => new Set(['GET']) },
});
const cause = { actor: 'changer', via: 'command_line', requestId: null } as const;
const by = { writer: 'dashboard:changer', cause } as const;
const name = (): string => randomBytes(8).toString('hex');
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

async function changeRoutes(): Promise<void> {
  const input = createBody.parse({ route_pattern: `/${name()}`, method: 'GET', amount: '1' });
  const others = [1, 2].map(() => ({ input: { ...input, route_pattern: `/${name()}` }, by }));
  const [made] = await routes.createAll([{ input, by }, ...others]);
  if (made?.kind !== 'created') throw new Error('no route was made');
  await routes.patch(made.route.id, { amount: '2', status: 'paused' }, by, () => true);
  await routes.remove(made.route.id, by, () => true);
}

async function changeKeys(): Promise<void> {
  const wanted = { name: 'k', scopes: ['sdk'], cause } as const;
  const { stored } = await createApiKey(store.apiKeys, wanted, { random, now: Date.now });
  await store.apiKeys.revoke(stored.id, new Date().toISOString(), cause);
}

async function changeSessions(): Promise<void> {
  const [id, now] = [name(), Date.now()];
  const who = { subject: 'changer', role: 'admin', via: 'link', members: [], notAfter: null } as const;
  const made = { id, digest: digest(id), keyDigest: digest(`key ${id}`), createdAt: now, seenAt: now, ...who };
  await store.desk.addSession(made, 100_000, { createdAfter: 0, seenAfter: 0, now });
  if (now % 2 === 0) await store.desk.endSession(id, { ...cause, at: Date.now() });
}

for (let round = 0; ; round++) {
  await Promise.all([changeRoutes(), changeKeys(), changeSessions()]);
  process.stdout.write(`${round}\n`);
}
