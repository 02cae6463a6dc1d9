// The sender over a real store in virtual time, while endpoints and the store fail at every step; and two of them on one
// PostgreSQL, of which one sends.
import { join } from 'node:path';
import { setImmediate as breathe } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { typesOf } from '../../../src/domain/webhooks/event-types.ts';
import { SENDER_LEASE_MS, type WebhookStore } from '../../../src/domain/webhooks/webhook-store.ts';
import { createRandom, type Schedule } from '../../../src/host/clock.ts';
import { createLog } from '../../../src/host/log.ts';
import type { PublicPost, PublicPostAnswer, PublicPostRequest } from '../../../src/host/public-post.ts';
import {
  MOST_AT_ONCE,
  startSender,
  type SenderDeps,
  type WebhookTarget,
} from '../../../src/registry/webhooks/sender.ts';
import { hasPostgres } from '../../postgres/server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../../postgres/store.ts';
import { createRng } from '../../support/random.ts';
import { temporaryFolder } from '../kit.ts';
import { openPatientCharges } from '../../support/sqlite-ledger.ts';

const log = createLog('error', () => undefined, Date.now);
const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});
afterAll(stopSharedPostgres);

const target = (id: string): WebhookTarget => ({
  ...{ id, url: `https://${id}.example.com/`, secrets: [SECRET], timeoutMs: 5_000, allowPrivate: false },
});
const answered = (status: number): PublicPostAnswer => ({
  kind: 'answered',
  status,
  retryAfter: undefined,
  beginning: '',
});

/** Time that passes only when a test lets it, timers in their order. */
function createVirtualTime() {
  let now = 0;
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();
  const schedule: Schedule = (ms, run) => {
    const timer = { at: now + Math.max(0, ms), run };
    timers.add(timer);
    return () => void timers.delete(timer);
  };
  return {
    now: () => now,
    schedule,
    /** Lets the time pass; `rest` resolves when what a timer began has come to rest. */
    pass: async (ms: number, rest: () => Promise<void>): Promise<void> => {
      const end = now + ms;
      await rest();
      for (;;) {
        const [next] = [...timers].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at);
        if (next === undefined) break;
        timers.delete(next);
        now = Math.max(now, next.at);
        next.run();
        await rest();
      }
      now = end;
    },
  };
}

type Sent = { readonly at: number; readonly request: PublicPostRequest; readonly endpoint: string };

/** A sender in virtual time over a SQLite file. `answer` says what becomes of each attempt. */
async function startLab(
  ids: readonly string[],
  answer: (sent: Sent, n: number, signal: AbortSignal) => PublicPostAnswer | Promise<PublicPostAnswer>,
  around: (store: WebhookStore) => Pick<WebhookStore, 'turn'> = (store) => store,
) {
  const time = createVirtualTime();
  const epoch = Date.now();
  const { folder, remove } = temporaryFolder();
  const charges = openPatientCharges(join(folder, 'ledger.db'), { now: () => epoch + time.now(), log });
  const store = charges.webhooks;
  const sent: Sent[] = [];
  let busy = 0;
  const counted = async <T>(work: Promise<T>): Promise<T> => {
    busy += 1;
    return work.finally(() => void (busy -= 1));
  };
  await store.declare(
    ids.map((id) => ({ id, types: typesOf(['*']) })),
    undefined,
  );
  const wrapped = around(store);
  const post: PublicPost = async (request, signal) => {
    const each = { at: time.now(), request, endpoint: new URL(request.url).hostname.replace('.example.com', '') };
    sent.push(each);
    return answer(each, sent.length, signal);
  };
  const rest = async (): Promise<void> => {
    for (let quiet = 0; quiet < 5; quiet = busy > 0 ? 0 : quiet + 1) await breathe();
  };
  const deps: SenderDeps = {
    store: { ...store, turn: (turn) => counted(wrapped.turn(turn)) },
    ...{ run: 'one', targets: () => ids.map(target), post, userAgent: 'Tollgate/1', log, random: createRandom() },
    bodyOf: ({ subject, type, content }) => JSON.stringify({ type, subject, ...(JSON.parse(content) as object) }),
    ...{ monotonic: time.now, schedule: time.schedule, observe: () => undefined },
  };
  const sender = startSender(deps);
  closing.push(remove, charges.close, async () => {
    const over = sender.close();
    await time.pass(5_000, rest);
    await over;
  });
  return {
    ...{ store, sent, sender, deps },
    pass: (ms: number) => time.pass(ms, rest),
    tell: (subject: string, n: number) =>
      store.tell({ type: 'route.updated', subject, content: JSON.stringify({ n }) }),
  };
}

test('behaviour: an event is signed by every secret anew for each attempt, with the same id and body', async () => {
  const lab = await startLab(['books'], (_sent, n) => answered(n < 4 ? 500 : 204));
  const id = await lab.tell('one', 1);
  for (let minutes = 0; minutes < 60 && lab.sent.length < 4; minutes++) await lab.pass(60_000);
  expect(lab.sent).toHaveLength(4);
  expect(new Set(lab.sent.map(({ request }) => request.body)).size).toBe(1);
  const [first, ...later] = lab.sent.map(({ request }) => request.headers);
  expect(new Webhook(SECRET).verify(lab.sent[0]?.request.body ?? '', { ...first })).toEqual({
    type: 'route.updated',
    subject: 'one',
    n: 1,
  });
  for (const headers of later) {
    expect(headers['webhook-id']).toBe(id);
    expect(headers['webhook-signature']).not.toBe(first?.['webhook-signature']);
    expect(Number(headers['webhook-timestamp'])).toBeGreaterThan(Number(first?.['webhook-timestamp']));
  }
});

test('behaviour: 16 go to one endpoint at a time and 64 in all, and a slow endpoint holds no other', async () => {
  const ids = ['slow', 'a', 'b', 'c', 'd', 'e'];
  const open = new Map<string, number>();
  const most = new Map<string, number>();
  let all = 0;
  let mostOfAll = 0;
  const held: (() => void)[] = [];
  const lab = await startLab(ids, async ({ endpoint }) => {
    open.set(endpoint, (open.get(endpoint) ?? 0) + 1);
    most.set(endpoint, Math.max(most.get(endpoint) ?? 0, open.get(endpoint) ?? 0));
    mostOfAll = Math.max(mostOfAll, ++all);
    if (endpoint === 'slow') await new Promise<void>((resolve) => held.push(resolve));
    else await breathe();
    open.set(endpoint, (open.get(endpoint) ?? 0) - 1);
    all -= 1;
    return answered(204);
  });
  for (let n = 0; n < 60; n++) await lab.tell(`subject ${n}`, n);
  await lab.pass(20_000);
  const taken = async (id: string): Promise<number> =>
    (await lab.store.deliveries({ endpointId: id, state: 'taken', limit: 200 })).length;
  expect(await Promise.all(ids.map(taken))).toEqual([0, 60, 60, 60, 60, 60]);
  expect([Math.max(...most.values()), mostOfAll <= MOST_AT_ONCE.all, most.get('slow')]).toEqual([
    MOST_AT_ONCE.each,
    true,
    MOST_AT_ONCE.each,
  ]);
  while ((await taken('slow')) < 60) {
    for (const release of held.splice(0)) release();
    await lab.pass(1_000);
  }
});

test.each([1, 2])(
  'attack: whatever fails, endpoint or store, every event is taken, each subject in its order (seed %d)',
  async (seed) => {
    const rng = createRng(seed, 0);
    const got = new Map<string, number[]>();
    const answers: readonly (() => PublicPostAnswer)[] = [
      ...[200, 204, 204, 204, 301, 404, 429, 500, 502, 504].map((status) => () => answered(status)),
      () => ({ kind: 'unanswered', reason: 'the connection was cut' }),
    ];
    const lab = await startLab(
      ['books'],
      ({ request }) => {
        const answer = rng.pick(answers)();
        const { subject, n } = JSON.parse(request.body) as { subject: string; n: number };
        if (answer.kind === 'answered' && answer.status < 300) got.set(subject, [...(got.get(subject) ?? []), n]);
        return answer;
      },
      (store) => ({
        // Before it was written, or after: what the sender is not told of.
        turn: async (turn) => {
          if (rng.chance(0.2)) throw new Error('away');
          const outcome = await store.turn(turn);
          if (rng.chance(0.2)) throw new Error('lost');
          return outcome;
        },
      }),
    );
    const subjects = Array.from({ length: 12 }, (_, index) => `subject ${index}`);
    for (let n = 0; n < 4; n++) for (const subject of subjects) await lab.tell(subject, n);
    for (let minutes = 0; minutes < 600; minutes++) {
      await lab.pass(60_000);
      if ((await lab.store.endpoints())[0]?.waiting === 0) break;
    }
    expect((await lab.store.endpoints())[0]?.waiting).toBe(0);
    for (const subject of subjects) {
      // One that was taken without the store knowing came again.
      const order = (got.get(subject) ?? []).filter((n, index, all) => all.indexOf(n) === index);
      expect([subject, order]).toEqual([subject, [0, 1, 2, 3]]);
    }
  },
);

test('attack: a sender whose time may be over breaks off what is under way, and writes nothing of it', async () => {
  const aborted: string[] = [];
  let isOther = false;
  let isAway = false;
  const lab = await startLab(
    ['books'],
    ({ request }, _n, signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          aborted.push(request.headers['webhook-id'] ?? '');
          resolve({ kind: 'unanswered', reason: 'the attempt was broken off' });
        });
      }),
    (store) => ({
      turn: async (turn) => {
        if (isAway) throw new Error('away');
        return isOther ? { kind: 'other' } : store.turn(turn);
      },
    }),
  );
  const first = await lab.tell('one', 1);
  await lab.pass(1_000);
  isAway = true;
  await lab.pass(SENDER_LEASE_MS - 3_000);
  expect(aborted).toEqual([]);
  await lab.pass(2_500);
  expect(aborted).toEqual([first]);
  isAway = false;
  await lab.pass(3_000);
  expect(lab.sent).toHaveLength(2);
  isOther = true;
  await lab.pass(1_000);
  expect(aborted).toEqual([first, first]);
  expect(await lab.store.deliveries({ endpointId: 'books', limit: 5 })).toMatchObject([
    { state: 'waiting', attempts: 0, tries: [] },
  ]);
});

describe.skipIf(!hasPostgres)('several processes', () => {
  test('attack: of two senders on one store never both send, also if one stands still, and nothing is lost', async () => {
    const url = await freshDatabase();
    let offset = 0;
    const shift = (): number => offset;
    const stores = [await openTestStore(url, { shift }), await openTestStore(url, { shift })];
    const open = new Map<string, number>();
    const both: string[] = [];
    const taken = new Set<string>();
    let frozen: Promise<void> | undefined;
    const start = (name: string, store: WebhookStore): void => {
      const sender = startSender({
        store: {
          ...store,
          // It stands still in the middle of a turn, and does not know.
          turn: async (turn) => {
            if (name === 'one') await frozen;
            return store.turn(turn);
          },
        },
        ...{ run: name, targets: () => [target('books')], userAgent: 'Tollgate/1', log, random: createRandom() },
        bodyOf: ({ content }) => content,
        post: async (request, signal) => {
          open.set(name, (open.get(name) ?? 0) + 1);
          const others = [...open].filter(([other, count]) => other !== name && count > 0);
          if (others.length > 0 && !signal.aborted) both.push(`${name} beside ${others.join(' ')}`);
          await breathe();
          open.set(name, (open.get(name) ?? 0) - 1);
          if (name !== 'one' || frozen === undefined) taken.add(request.body);
          return answered(204);
        },
        monotonic: () => performance.now() + offset,
        schedule: (ms, run) => {
          const timer = setTimeout(run, Math.min(ms, 20));
          return () => clearTimeout(timer);
        },
        observe: () => undefined,
      });
      closing.push(sender.close);
    };
    closing.push(async () => void (await Promise.all(stores.map((each) => each.close()))));
    const [one, two] = stores.map(({ charges }) => charges.webhooks) as [WebhookStore, WebhookStore];
    await one.declare([{ id: 'books', types: typesOf(['*']) }], undefined);
    start('one', one);
    start('two', two);
    const tell = async (from: number): Promise<void> => {
      for (let n = from; n < from + 20; n++)
        await one.tell({ type: 'route.updated', subject: `s${n % 5}`, content: JSON.stringify({ n }) });
    };
    const waits = async (): Promise<number | undefined> => (await two.endpoints())[0]?.waiting;
    await tell(0);
    await expect.poll(waits, { timeout: 30_000 }).toBe(0);
    const { promise, resolve: thaw } = Promise.withResolvers<void>();
    frozen = promise;
    offset += SENDER_LEASE_MS + 1_000;
    await tell(20);
    await expect.poll(waits, { timeout: 30_000 }).toBe(0);
    frozen = undefined;
    thaw();
    await tell(40);
    await expect.poll(waits, { timeout: 30_000 }).toBe(0);
    expect([both, taken.size]).toEqual([[], 60]);
  });
});
