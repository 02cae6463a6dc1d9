// What every store of an outbox does: an event stands in it exactly if what it tells was committed, in the order in which it
// happened, and leaves it only when an endpoint took it or its time is over.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Ledger } from '../../src/domain/payment/ledger.ts';
import type { ChargeEvent } from '../../src/domain/payment/transition.ts';
import { concludeAttempt, PAUSES_MS, type WebhookAnswer } from '../../src/domain/webhooks/attempt-outcome.ts';
import { typesOf, type WebhookType } from '../../src/domain/webhooks/event-types.ts';
import {
  DISABLED_AFTER_MS,
  KEPT_MS,
  SENDER_LEASE_MS,
  type AttemptResult,
  type DueDelivery,
  type EndpointState,
  type StoredDelivery,
  type WebhookStore,
} from '../../src/domain/webhooks/webhook-store.ts';
import { bodyOf } from '../../src/registry/webhooks/event-body.ts';
import { claimOf, proofOf } from '../cases/claims.ts';

export type OpenedOutbox = {
  /** Two ways to the same store, as two processes have them. */
  readonly stores: readonly [WebhookStore, WebhookStore];
  readonly ledger: Ledger;
  readonly pass: (ms: number) => void;
  readonly close: () => Promise<void>;
};

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAY = 86_400 * SECOND;
const OK: WebhookAnswer = { kind: 'answered', status: 204, retryAfter: undefined, beginning: '' };
const answered = (status: number, retryAfter?: string): WebhookAnswer => ({
  ...{ kind: 'answered', status, retryAfter, beginning: `said ${status}` },
});

/** `isShared`: several processes may send, so that only one does. */
export function describeOutbox(
  name: string,
  open: () => Promise<OpenedOutbox>,
  { isShared }: { readonly isShared: boolean },
): void {
  describe(`webhooks: ${name}`, () => {
    let opened: OpenedOutbox;
    let store: WebhookStore;
    let other: WebhookStore;
    let n = 3_000_000;
    beforeAll(async () => {
      opened = await open();
      [store, other] = opened.stores;
    });
    afterAll(() => opened.close());

    const SENDER = 'sender one';
    const declare = (ids: Readonly<Record<string, readonly WebhookType[]>>): Promise<void> => {
      opened.pass(100);
      const all = Object.entries(ids).map(([id, types]) => ({ id, types }));
      return store.declare(all, store.now() - 50);
    };
    /** Begins with endpoints that are new and nothing that waits. */
    let endpoints = 0;
    const fresh = async (types: readonly WebhookType[] = typesOf(['*'])): Promise<string> => {
      const id = `endpoint-${++endpoints}`;
      await declare({ [id]: types });
      opened.pass(1);
      return id;
    };
    const claimed = async (): Promise<ReturnType<typeof claimOf>> => {
      const claim = claimOf(++n);
      const options = { owner: 'run/one', leaseMs: 60_000, maxUnsettledPerPayer: 100 };
      expect((await opened.ledger.claim(claim, options)).kind).toBe('claimed');
      return claim;
    };
    const advance = async (id: string, event: ChargeEvent): Promise<void> => {
      const moved = await opened.ledger.advance(id, event, { owner: 'run/one', changeId: `change ${++n}` });
      expect(moved.kind === 'ok' ? moved.kind : moved.because).toBe('ok');
    };
    const settle = async (claim: ReturnType<typeof claimOf>): Promise<void> => {
      await advance(claim.id, { kind: 'settle_started', via: 'one', leaseMs: 60_000 });
      await advance(claim.id, { kind: 'settled', proof: proofOf(claim), leaseMs: 60_000 });
    };
    const settled = async (): Promise<string> => {
      const claim = await claimed();
      await settle(claim);
      return claim.id;
    };
    const deliver = async (id: string): Promise<void> => {
      await advance(id, { kind: 'delivered', partial: false });
      // Nobody waits for that word: it shares the commit of what comes next.
      await opened.ledger.findByChargeId(id);
    };
    const turn = async (
      endpointId: string,
      {
        results = [],
        free = 16,
        busy = [],
        by = store,
        sender = SENDER,
      }: {
        results?: readonly AttemptResult[];
        free?: number;
        busy?: readonly number[];
        by?: WebhookStore;
        sender?: string;
      } = {},
    ): Promise<readonly DueDelivery[]> => {
      // Clocks of two processes differ by some milliseconds.
      opened.pass(20);
      const outcome = await by.turn({ sender, results, rooms: [{ endpointId, free, busy }] });
      if (outcome.kind === 'other') throw new Error('another process sends');
      return outcome.due;
    };
    const conclude = (due: DueDelivery, answer: WebhookAnswer): AttemptResult =>
      concludeAttempt(due, answer, { at: store.now(), endedAt: store.now(), durationMs: 5, draw: 0.5 });
    const stateOf = async (id: string): Promise<EndpointState | undefined> =>
      (await other.endpoints()).find((each) => each.id === id);
    const kept = (endpointId: string): Promise<readonly StoredDelivery[]> =>
      other.deliveries({ endpointId, limit: 100 });
    const named = (all: readonly { readonly event: DueDelivery['event'] }[]): readonly string[] =>
      all.map(({ event }) => `${event.subject} ${event.type} ${event.sequence}`);
    /** Fails until the schedule is over. */
    const failing = async (endpointId: string, times: number): Promise<void> => {
      for (let left = times; left > 0; left--) {
        const due = await turn(endpointId);
        await turn(endpointId, { results: due.map((each) => conclude(each, answered(500))), free: 0 });
        opened.pass(Math.max(...PAUSES_MS) * 1.2);
      }
    };

    test('behaviour: nothing is written of charges that changed before an endpoint wanted it', async () => {
      const id = await settled();
      const endpoint = await fresh();
      expect(await kept(endpoint)).toEqual([]);
      await deliver(id);
      expect(named(await kept(endpoint))).toEqual([`${id} charge.delivered 1`]);
    });

    test('behaviour: every change of state that an endpoint wants is told once, numbered by charge, as the charge was then', async () => {
      const endpoint = await fresh([...typesOf(['*']), 'charge.claimed']);
      const claims = await Promise.all(Array.from({ length: 12 }, claimed));
      await Promise.all(
        claims.map(async (claim, index) => {
          if (index % 3 === 0) return advance(claim.id, { kind: 'released', reason: 'client_gone' });
          if (index % 3 === 1) {
            await advance(claim.id, { kind: 'settle_started', via: 'one', leaseMs: 60_000 });
            return advance(claim.id, { kind: 'settle_refused', reason: 'no' });
          }
          await settle(claim);
          return deliver(claim.id);
        }),
      );
      const all = (await kept(endpoint)).toReversed();
      const ends = [['released'], ['failed'], ['settled', 'delivered']] as const;
      for (const [index, { id }] of claims.entries()) {
        const own = all.filter(({ event }) => event.subject === id);
        const states = ['claimed', ...(ends[index % 3] ?? [])];
        expect(named(own)).toEqual(states.map((state, place) => `${id} charge.${state} ${place + 1}`));
        const bodies = own.map(({ event }) =>
          JSON.parse(bodyOf(event, { networks: { find: () => undefined }, registryId: () => 'r' })),
        );
        expect(
          bodies.map(({ data }) => [data.id, data.status, data.sequence, data.amount_atomic, data.registry_id]),
        ).toEqual(states.map((state, place) => [id, state, place + 1, '100000', 'r']));
        expect(bodies.map(({ type, timestamp }) => [type, timestamp])).toEqual(
          own.map(({ event }) => [event.type, new Date(event.at).toISOString()]),
        );
      }
      expect(all).toHaveLength(4 * 2 + 4 * 2 + 4 * 3);
    });

    test('behaviour: a charge whose end is not known tells of that once, and then of its end', async () => {
      const endpoint = await fresh();
      const claim = await claimed();
      await advance(claim.id, { kind: 'settle_started', via: 'one', leaseMs: 60_000 });
      await advance(claim.id, { kind: 'settle_unknown', reason: 'timeout', lookInMs: 1000 });
      await advance(claim.id, { kind: 'looked', at: 'end', search: null, lookInMs: 1000, reason: 'nothing yet' });
      await advance(claim.id, { kind: 'settled', proof: proofOf(claim), leaseMs: 0 });
      expect(named((await kept(endpoint)).toReversed())).toEqual([
        `${claim.id} charge.unknown 1`,
        `${claim.id} charge.settled 2`,
      ]);
    });

    test('attack: a change that is refused, and a claim that is not made, tell nothing', async () => {
      const endpoint = await fresh([...typesOf(['*']), 'charge.claimed']);
      const claim = await claimed();
      const options = { owner: 'run/two', leaseMs: 60_000, maxUnsettledPerPayer: 100 };
      const again = await Promise.all(Array.from({ length: 5 }, () => opened.ledger.claim({ ...claim }, options)));
      expect(again.every(({ kind }) => kind !== 'claimed')).toBe(true);
      const wrong = await opened.ledger.advance(claim.id, { kind: 'delivered', partial: false }, { owner: 'run/one' });
      expect(wrong.kind).toBe('conflict');
      expect(named(await kept(endpoint))).toEqual([`${claim.id} charge.claimed 1`]);
    });

    test('behaviour: an event of a charge waits until every earlier one was taken or given up; charges do not wait for each other', async () => {
      const endpoint = await fresh();
      const [one, two] = [await settled(), await settled()];
      await deliver(one);
      const first = await turn(endpoint);
      expect(named(first)).toEqual([`${one} charge.settled 1`, `${two} charge.settled 1`]);
      const [ofOne, ofTwo] = first as [DueDelivery, DueDelivery];
      // Under way is not over.
      expect(await turn(endpoint, { busy: [ofOne.n, ofTwo.n] })).toEqual([]);
      expect(await turn(endpoint, { results: [conclude(ofOne, answered(500))], busy: [ofTwo.n] })).toEqual([]);
      opened.pass(6 * SECOND);
      const again = await turn(endpoint, { busy: [ofTwo.n] });
      expect(named(again)).toEqual([`${one} charge.settled 1`]);
      expect(again[0]?.attempts).toBe(1);
      const next = await turn(endpoint, { results: again.map((each) => conclude(each, OK)), busy: [ofTwo.n] });
      expect(named(next)).toEqual([`${one} charge.delivered 2`]);
      await turn(endpoint, { results: [...next, ofTwo].map((each) => conclude(each, OK)), free: 0 });
      expect(await turn(endpoint)).toEqual([]);
      expect((await kept(endpoint)).map(({ state }) => state)).toEqual(['taken', 'taken', 'taken']);
    });

    test('behaviour: as many are due as there is room for, the oldest first, each endpoint by itself', async () => {
      const [one, two] = [`endpoint-${++endpoints}`, `endpoint-${++endpoints}`];
      await declare({ [one]: typesOf(['charge.settled']), [two]: typesOf(['charge.settled']) });
      const ids: string[] = [];
      for (let left = 5; left > 0; left--) ids.push(await settled());
      const some = await turn(one, { free: 3 });
      expect(some.map(({ event }) => event.subject)).toEqual(ids.slice(0, 3));
      const busy = some.map((each) => each.n);
      expect((await turn(one, { free: 9, busy })).map(({ event }) => event.subject)).toEqual(ids.slice(3));
      await turn(one, { results: some.map((each) => conclude(each, OK)), free: 0 });
      expect((await turn(two)).map(({ event }) => event.subject)).toEqual(ids);
      expect((await stateOf(one))?.waiting).toBe(2);
      expect((await stateOf(two))?.waiting).toBe(5);
    });

    test('behaviour: ten attempts by the schedule, then an event is given up, the next of its charge is due, and by hand it goes again', async () => {
      const endpoint = await fresh();
      const id = await settled();
      await deliver(id);
      const pauses: number[] = [];
      for (let attempt = 0; attempt < 10; attempt++) {
        const [due] = await turn(endpoint);
        expect([due?.event.type, due?.attempts]).toEqual(['charge.settled', attempt]);
        const result = conclude(due as DueDelivery, answered(500));
        await turn(endpoint, { results: [result], free: 0 });
        const dueAt = (await kept(endpoint)).at(-1)?.dueAt ?? null;
        if (dueAt !== null) pauses.push(dueAt - result.endedAt);
        if (dueAt !== null) opened.pass(dueAt - store.now());
      }
      expect(pauses).toEqual(PAUSES_MS);
      const [, first] = await kept(endpoint);
      expect(first).toMatchObject({ state: 'given_up', attempts: 10, dueAt: null });
      expect(first?.tries).toHaveLength(10);
      expect(first?.tries[0]).toMatchObject({ status: 500, durationMs: 5, said: 'said 500' });
      const next = await turn(endpoint);
      expect(named(next)).toEqual([`${id} charge.delivered 2`]);
      expect(await store.retry(endpoint, first?.event.id ?? '')).toBe(true);
      expect(await store.retry(endpoint, 'evt_nothing')).toBe(false);
      const again = await turn(endpoint);
      expect(again.map(({ event, attempts }) => [event.id, attempts])).toEqual([[first?.event.id, 0]]);
      await turn(endpoint, { results: again.map((each) => conclude(each, OK)), free: 0 });
      expect((await kept(endpoint)).map(({ state }) => state)).toEqual(['waiting', 'taken']);
      expect(await store.retry(endpoint, first?.event.id ?? '')).toBe(true);
      expect((await kept(endpoint)).map(({ state }) => state)).toEqual(['waiting', 'waiting']);
    });

    test('behaviour: while an endpoint fails its oldest event is tried every minute, beside the schedule', async () => {
      const endpoint = await fresh();
      await settled();
      const due = await turn(endpoint);
      await turn(endpoint, { results: due.map((each) => conclude(each, answered(500))), free: 0 });
      opened.pass(6 * SECOND);
      const second = await turn(endpoint);
      await turn(endpoint, { results: second.map((each) => conclude(each, answered(500))), free: 0 });
      const [waiting] = await kept(endpoint);
      for (let minute = 0; minute < 3; minute++) {
        opened.pass(30 * SECOND);
        expect(await turn(endpoint)).toEqual([]);
        opened.pass(29 * SECOND);
        const beside = await turn(endpoint);
        expect(beside.map(({ attempts }) => attempts)).toEqual([2]);
        await turn(endpoint, { results: beside.map((each) => conclude(each, answered(500))), free: 0 });
        expect((await kept(endpoint))[0]).toMatchObject({ attempts: 2, dueAt: waiting?.dueAt });
      }
    });

    test('behaviour: the first answer of the kind 2xx makes all that waits due, what it was due for already a minute after it was tried', async () => {
      const endpoint = await fresh();
      const ids = [await settled(), await settled(), await settled()];
      for (const pause of [0, 6 * SECOND]) {
        opened.pass(pause);
        const due = await turn(endpoint);
        expect(due).toHaveLength(3);
        await turn(endpoint, { results: due.map((each) => conclude(each, answered(500))), free: 0 });
      }
      expect(await stateOf(endpoint)).toMatchObject({
        status: 'failing',
        waiting: 3,
        lastError: 'it answered 500',
        lastSuccessAt: null,
      });
      opened.pass(MINUTE);
      const [oldest, ...rest] = await turn(endpoint);
      expect([oldest?.event.subject, rest]).toEqual([ids[0], []]);
      await turn(endpoint, { results: [conclude(oldest as DueDelivery, OK)], free: 0 });
      opened.pass(1);
      await turn(endpoint, { free: 16, busy: [oldest?.n ?? 0] });
      const due = await turn(endpoint);
      expect(due.map(({ event }) => event.subject)).toEqual(ids.slice(1));
      expect(await stateOf(endpoint)).toMatchObject({ status: 'ok', waiting: 2 });
      // One that still fails while others are taken keeps its schedule, and no success hurries it at once again.
      const [poison, good] = due as [DueDelivery, DueDelivery];
      await turn(endpoint, { results: [conclude(poison, answered(500)), conclude(good, OK)], free: 0 });
      opened.pass(SECOND);
      expect([await turn(endpoint), await turn(endpoint)]).toEqual([[], []]);
      expect((await kept(endpoint)).at(-2)).toMatchObject({ attempts: 2, state: 'waiting' });
      // A minute after its last attempt it is due again, if the endpoint failed and took something meanwhile.
      await settled();
      const [another] = await turn(endpoint);
      await turn(endpoint, { results: [conclude(another as DueDelivery, answered(500))], free: 0 });
      opened.pass(6 * SECOND);
      const [retried] = await turn(endpoint);
      await turn(endpoint, { results: [conclude(retried as DueDelivery, OK)], free: 0 });
      expect([await turn(endpoint), await turn(endpoint)]).toEqual([[], []]);
      opened.pass(MINUTE);
      const again = await turn(endpoint);
      expect(again.map(({ n, attempts }) => [n, attempts])).toEqual([[poison.n, 2]]);
      // The word of an operator is for all that waits, and begins a new schedule.
      await turn(endpoint, { results: again.map((each) => conclude(each, answered(410))), free: 0 });
      expect((await stateOf(endpoint))?.status).toBe('disabled');
      opened.pass(1);
      await store.enable(endpoint);
      await turn(endpoint, { free: 16, busy: [poison.n] });
      expect((await turn(endpoint)).map(({ n, attempts }) => [n, attempts])).toEqual([[poison.n, 0]]);
    });

    test.each([
      ['429 with seconds', answered(429, '120'), 120 * SECOND],
      ['502 with too long a time', answered(502, '999999'), DAY],
      ['504 without a time', answered(504), 30 * SECOND],
    ])('behaviour: an endpoint rests after %s', async (_name, answer, restMs) => {
      const endpoint = await fresh();
      const [due] = [await turn(endpoint), await settled()];
      expect(due).toEqual([]);
      const first = await turn(endpoint);
      await settled();
      await turn(endpoint, { results: first.map((each) => conclude(each, answer)), free: 0 });
      opened.pass(restMs - SECOND);
      expect(await turn(endpoint)).toEqual([]);
      opened.pass(2 * SECOND);
      expect((await turn(endpoint)).length).toBeGreaterThan(0);
    });

    test('behaviour: 410 disables an endpoint at once; its events wait, and go when it is enabled, by a new schedule', async () => {
      const endpoint = await fresh();
      const id = await settled();
      const first = await turn(endpoint);
      await turn(endpoint, { results: first.map((each) => conclude(each, answered(410))), free: 0 });
      expect((await stateOf(endpoint))?.status).toBe('disabled');
      await deliver(id);
      opened.pass(DAY);
      expect(await turn(endpoint)).toEqual([]);
      expect((await stateOf(endpoint))?.waiting).toBe(2);
      expect([await store.enable(endpoint), await store.enable('nobody')]).toEqual([true, false]);
      expect((await stateOf(endpoint))?.status).toBe('ok');
      await turn(endpoint, { free: 0 });
      const due = await turn(endpoint);
      expect(due.map(({ attempts, event }) => [attempts, event.type])).toEqual([[0, 'charge.settled']]);
    });

    test('behaviour: five days without an answer of the kind 2xx disable an endpoint, and one in between does not', async () => {
      const endpoint = await fresh();
      await settled();
      await failing(endpoint, 4);
      expect((await stateOf(endpoint))?.status).toBe('failing');
      const [good] = await turn(endpoint);
      await turn(endpoint, { results: [conclude(good as DueDelivery, OK)], free: 0 });
      opened.pass(DISABLED_AFTER_MS);
      await settled();
      const [first] = await turn(endpoint);
      await turn(endpoint, { results: [conclude(first as DueDelivery, answered(500))], free: 0 });
      expect((await stateOf(endpoint))?.status).toBe('failing');
      opened.pass(DISABLED_AFTER_MS);
      const [late] = await turn(endpoint);
      await turn(endpoint, {
        results: [conclude(late as DueDelivery, { kind: 'unanswered', reason: 'nobody is there' })],
        free: 0,
      });
      expect(await stateOf(endpoint)).toMatchObject({ status: 'disabled', lastError: 'nobody is there' });
    });

    test('behaviour: taken events are kept for 7 days, those given up for 30, those of a disabled endpoint for 7', async () => {
      const endpoint = await fresh();
      const [one, two] = [await settled(), await settled()];
      const [taken, lost] = (await turn(endpoint)) as [DueDelivery, DueDelivery];
      await turn(endpoint, {
        results: [
          conclude(taken, OK),
          { ...conclude(lost, answered(500)), outcome: { kind: 'given_up', attempts: 10 } },
        ],
        free: 0,
      });
      const pruned = async (): Promise<readonly string[]> => {
        while (await store.prune());
        return (await kept(endpoint)).map(({ event }) => event.subject);
      };
      opened.pass(KEPT_MS.taken - MINUTE);
      expect(await pruned()).toEqual([two, one]);
      opened.pass(2 * MINUTE);
      expect(await pruned()).toEqual([two]);
      opened.pass(KEPT_MS.givenUp - KEPT_MS.taken);
      expect(await pruned()).toEqual([]);
      const third = await settled();
      const due = await turn(endpoint);
      await turn(endpoint, { results: due.map((each) => conclude(each, answered(410))), free: 0 });
      opened.pass(KEPT_MS.disabled - MINUTE);
      expect(await pruned()).toEqual([third]);
      opened.pass(2 * MINUTE);
      expect(await pruned()).toEqual([]);
    });

    test('behaviour: an endpoint that is named no more is forgotten with what waits for it, and others are not', async () => {
      const [gone, stays] = [`endpoint-${++endpoints}`, `endpoint-${++endpoints}`];
      await declare({ [gone]: typesOf(['*']), [stays]: typesOf(['*']) });
      const id = await settled();
      opened.pass(100);
      await store.declare([{ id: stays, types: typesOf(['*']) }], undefined);
      expect((await stateOf(gone))?.waiting).toBe(1);
      await store.declare([{ id: stays, types: typesOf(['*']) }], store.now() - 50);
      expect(await stateOf(gone)).toBeUndefined();
      while (await store.prune());
      await store.prune();
      expect([(await kept(gone)).length, named(await kept(stays))]).toEqual([0, [`${id} charge.settled 1`]]);
      await deliver(id);
      expect((await kept(gone)).length).toBe(0);
      await declare({ [gone]: typesOf(['*']), [stays]: typesOf(['*']) });
      expect(await stateOf(gone)).toMatchObject({ status: 'ok', waiting: 0 });
    });

    test('behaviour: an event for one endpoint goes there alone, whatever it wants', async () => {
      const [one, two] = [`endpoint-${++endpoints}`, `endpoint-${++endpoints}`];
      await declare({ [one]: [], [two]: typesOf(['attention.raised']) });
      const id = await store.tell({ type: 'test', subject: '', content: '{"a":1}', endpointId: one });
      expect(id).toMatch(/^evt_[0-9a-f]{32}$/);
      const raised = await other.tell({
        type: 'attention.raised',
        subject: 'store_low',
        content: '{"code":"store_low"}',
      });
      const ids = async (endpoint: string): Promise<readonly string[]> =>
        (await kept(endpoint)).map(({ event }) => event.id);
      expect([await ids(one), await ids(two)]).toEqual([[id], [raised]]);
    });

    test.runIf(isShared)(
      'behaviour: of two processes one sends; the other one does when it resigned or its time is over',
      async () => {
        const endpoint = await fresh();
        await settled();
        const [due] = await turn(endpoint);
        const rooms = [{ endpointId: endpoint, free: 16, busy: [] }];
        const results = [conclude(due as DueDelivery, OK)];
        expect(await other.turn({ sender: 'sender two', results, rooms })).toEqual({ kind: 'other' });
        expect((await kept(endpoint))[0]?.state).toBe('waiting');
        opened.pass(SENDER_LEASE_MS + 1);
        expect(await turn(endpoint, { by: other, sender: 'sender two' })).toHaveLength(1);
        // What the first one found out comes too late.
        expect(await store.turn({ sender: SENDER, results, rooms })).toEqual({ kind: 'other' });
        expect((await kept(endpoint))[0]?.state).toBe('waiting');
        await other.resign('sender two');
        await turn(endpoint, { results, free: 0 });
        expect((await kept(endpoint))[0]?.state).toBe('taken');
      },
    );

    test('attack: a result of an attempt that another one overtook changes nothing', async () => {
      const endpoint = await fresh();
      await settled();
      const [due] = (await turn(endpoint)) as [DueDelivery];
      await turn(endpoint, { results: [conclude(due, answered(500))], free: 0 });
      await turn(endpoint, { results: [conclude(due, answered(500))], free: 0 });
      expect((await kept(endpoint))[0]).toMatchObject({ attempts: 1 });
    });
  });
}
