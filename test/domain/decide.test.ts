import { describe, expect, test } from 'vitest';
import { decide, type Caller, type Policy, type Rules } from '../../src/domain/decide.ts';
import { makeOffer } from '../../src/domain/payment/offer.ts';
import { problem } from '../../src/domain/problem.ts';
import type { Match } from '../../src/domain/routing/snapshot.ts';
import { RECEIVERS } from '../cases/receivers.ts';
import { route } from '../cases/routes.ts';

const POLICY: Policy = { undeclaredMethods: 'forward', preflight: 'answer', v1: false };
const ACTIVE = route('GET /a');
const PAUSED = route('GET /a', { status: 'paused' });
const NAMED = route('GET /a', { allowAnonymous: false });
const CREDENTIAL = { version: 2, value: 'e30=' } as const;

function ask(match: Match, rest: { policy?: Partial<Policy>; caller?: Partial<Caller>; preflight?: boolean } = {}) {
  let callerRead = false;
  const rules: Rules<undefined> = {
    policy: { ...POLICY, ...rest.policy },
    caller: () => {
      callerRead = true;
      return { customerId: undefined, credential: undefined, ...rest.caller };
    },
    offer: (asked) => makeOffer(asked, RECEIVERS),
  };
  const question = { method: 'GET', preflight: rest.preflight ?? false, request: undefined };
  return { verdict: decide(rules, match, question), callerRead };
}

const on = (match: Match, rest: Parameters<typeof ask>[1] = {}) => ask(match, rest).verdict;

describe('what costs nothing', () => {
  test('behaviour: a request that costs nothing passes without a look at what the caller presents', () => {
    for (const match of [
      { kind: 'none' },
      { kind: 'route', route: PAUSED },
      { kind: 'undeclared', highestPriced: undefined, declared: ['GET', 'HEAD'] },
    ] as const) {
      const { verdict, callerRead } = ask(match, { caller: { credential: CREDENTIAL } });
      expect([verdict.kind, callerRead]).toEqual(['pass', false]);
    }
  });

  test('behaviour: an undeclared method passes under forward, pays under pay, ends under refuse', () => {
    const match = { kind: 'undeclared', highestPriced: ACTIVE, declared: ['GET', 'HEAD'] } as const;
    expect(on(match)).toMatchObject({ kind: 'pass', because: 'undeclared' });
    expect(on(match, { policy: { undeclaredMethods: 'pay' } })).toMatchObject({
      kind: 'demand',
      offer: { route: ACTIVE },
    });
    expect(on(match, { policy: { undeclaredMethods: 'refuse' } })).toMatchObject({
      kind: 'refuse',
      problem: { code: 'method_not_declared', headers: { Allow: 'GET, HEAD' } },
    });
  });

  test('behaviour: paused routes cost nothing for other methods either', () => {
    for (const undeclaredMethods of ['forward', 'pay'] as const) {
      expect(
        on(
          { kind: 'undeclared', highestPriced: undefined, declared: ['GET', 'HEAD'] },
          { policy: { undeclaredMethods } },
        ),
      ).toMatchObject({
        kind: 'pass',
      });
    }
  });

  test('refuses: under refuse, a method that no route declares where every route is paused; its preflight goes on', () => {
    const paused = { kind: 'undeclared', highestPriced: undefined, declared: ['GET', 'HEAD'] } as const;
    const policy = { undeclaredMethods: 'refuse' } as const;
    expect(on(paused, { policy })).toMatchObject({ kind: 'refuse', problem: { code: 'method_not_declared' } });
    expect(on(paused, { policy, preflight: true })).toMatchObject({ kind: 'pass' });
  });

  test('behaviour: a preflight on a protected path is answered here, on a paused one it goes on', () => {
    expect(on({ kind: 'route', route: ACTIVE }, { preflight: true })).toEqual({ kind: 'answer_preflight' });
    expect(on({ kind: 'undeclared', highestPriced: ACTIVE, declared: ['GET', 'HEAD'] }, { preflight: true })).toEqual({
      kind: 'answer_preflight',
    });
    expect(on({ kind: 'route', route: PAUSED }, { preflight: true })).toMatchObject({ kind: 'pass' });
    expect(on({ kind: 'route', route: ACTIVE }, { preflight: true, policy: { preflight: 'forward' } })).toMatchObject({
      because: 'preflight',
    });
  });
});

describe('what costs', () => {
  const match = { kind: 'route', route: ACTIVE } as const;

  test('behaviour: a payment is demanded if nothing is presented, and verified if something is', () => {
    expect(on(match)).toMatchObject({ kind: 'demand', because: 'payment_required' });
    expect(on(match, { caller: { credential: CREDENTIAL } })).toMatchObject({ kind: 'verify', credential: CREDENTIAL });
  });

  test('behaviour: a v1 credential counts only where v1 is enabled', () => {
    const caller = { credential: { version: 1, value: 'e30=' } } as const;
    expect(on(match, { caller })).toMatchObject({ kind: 'demand', because: 'x402_version_unsupported' });
    expect(on(match, { caller, policy: { v1: true } })).toMatchObject({ kind: 'verify' });
  });

  test('behaviour: a route closed to anonymous callers needs a customer id before anything else', () => {
    const named = { kind: 'route', route: NAMED } as const;
    expect(on(named, { caller: { credential: CREDENTIAL } })).toMatchObject({
      kind: 'refuse',
      problem: { code: 'customer_required' },
    });
    expect(on(named, { caller: { customerId: 'c1' } })).toMatchObject({ kind: 'demand' });
  });

  test('refuses: a route that cannot be priced; a payment for it is still looked up', () => {
    const unpriced = { kind: 'route', route: route('GET /a', { receiverConfigId: 'nobody' }) } as const;
    expect(on(unpriced)).toMatchObject({ kind: 'refuse', problem: { code: 'receiver_unknown' } });
    expect(on(unpriced, { caller: { credential: CREDENTIAL } })).toMatchObject({
      kind: 'verify',
      offer: { code: 'receiver_unknown' },
    });
  });

  test('refuses: a caller whose headers could not be read', () => {
    const rules: Rules<undefined> = {
      policy: POLICY,
      caller: () => problem('payment_malformed', 'two of them'),
      offer: (asked) => makeOffer(asked, RECEIVERS),
    };
    const verdict = decide(rules, match, { method: 'GET', preflight: false, request: undefined });
    expect(verdict).toMatchObject({ kind: 'refuse', problem: { code: 'payment_malformed' } });
  });
});
