// Limits per client: how often, how many at once, whom a request counts for, and that strangers cannot make them grow.
import { describe, expect, test } from 'vitest';
import type { PaywallVerdict } from '../../src/domain/decide.ts';
import type { Problem } from '../../src/domain/problem.ts';
import { createAdmission, type Admission, type AdmissionOptions } from '../../src/gateway/admission.ts';
import { clientGroup } from '../../src/gateway/client-group.ts';
import { createTrust } from '../../src/gateway/trust.ts';
import { createRateLimit, type RateLimit } from '../../src/host/rate-limit.ts';

function makeLimit(perMinute: number, burst: number, keys = 100): { limit: RateLimit; pass: (ms: number) => void } {
  let now = 5;
  return { limit: createRateLimit({ perMinute, burst, keys }, () => now), pass: (ms) => void (now += ms) };
}
const taken = (limit: RateLimit, key: string, tries: number): number =>
  Array.from({ length: tries }, () => limit.takeMs(key)).filter((waitMs) => waitMs === 0).length;

describe('how often', () => {
  test.each([
    [60, 1],
    [60, 60],
    [7, 3],
    [6000, 6000],
    [1_000_000, 977],
  ])('refuses: at %i a minute, one request more than %i at once, and says when to come back', (perMinute, burst) => {
    const { limit, pass } = makeLimit(perMinute, burst);
    expect(taken(limit, 'a', burst + 1)).toBe(burst);
    const waitMs = limit.takeMs('a');
    expect(waitMs).toBeGreaterThan(0);
    expect(waitMs).toBeLessThanOrEqual(60_000 / perMinute);
    pass(waitMs);
    expect(taken(limit, 'a', 2)).toBe(1);
  });

  test('behaviour: over a long time so many requests pass as the rate says, and never more at once than the burst', () => {
    const { limit, pass } = makeLimit(600, 10);
    let all = 0;
    for (let ms = 0; ms < 60_000; ms += 10) {
      all += taken(limit, 'a', 3);
      pass(10);
    }
    expect(all).toBeGreaterThanOrEqual(600 + 9);
    expect(all).toBeLessThanOrEqual(600 + 11);
    pass(3_600_000);
    expect(taken(limit, 'a', 100)).toBe(10);
  });

  test('behaviour: a request that is given back can be taken again, never more than once, and keys do not know of each other', () => {
    const { limit } = makeLimit(60, 2);
    for (let i = 0; i < 10; i++) {
      expect(limit.takeMs('a')).toBe(0);
      limit.giveBack('a');
    }
    for (let i = 0; i < 10; i++) limit.giveBack('a');
    expect(taken(limit, 'a', 5)).toBe(2);
    expect(limit.takeMs('b')).toBe(0);
  });

  test('attack: keys without end push older ones out, never one that goes on asking', () => {
    const { limit } = makeLimit(1, 1, 100);
    limit.takeMs('steady');
    limit.takeMs('silent');
    for (let i = 0; i < 49; i++) limit.takeMs(`stranger ${i}`);
    // As many as are remembered for certain.
    expect([limit.takeMs('steady') > 0, limit.takeMs('silent') > 0]).toEqual([true, true]);
    for (let i = 0; i < 1000; i++) {
      limit.takeMs(`other ${i}`);
      expect(limit.takeMs('steady')).toBeGreaterThan(0);
    }
    expect(limit.takeMs('silent')).toBe(0);
  });
});

describe('whom a request counts for', () => {
  const trusts = createTrust(['10.0.0.0/8', 'fd00::/8']);
  const group = (remoteAddress: string | undefined, forwarded?: string): string =>
    clientGroup({ socket: { remoteAddress }, headers: forwarded ? { 'x-forwarded-for': forwarded } : {} }, trusts);

  test.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:2::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['2001:db8:1:2::192.0.2.7', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    [undefined, ''],
  ])('behaviour: the address %s counts as %s', (address, expected) => {
    expect(group(address)).toBe(expected);
  });

  test('attack: an address that a stranger says to have is not believed', () => {
    expect(group('192.0.2.7', '198.51.100.1')).toBe('192.0.2.7');
  });

  test.each([
    ['198.51.100.1', '198.51.100.1'],
    ['203.0.113.9, 198.51.100.1', '198.51.100.1'],
    ['203.0.113.9, 198.51.100.1, 10.0.0.2', '198.51.100.1'],
    ['198.51.100.1:4711', '198.51.100.1'],
    ['[2001:db8:1:2::9]:4711', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
    ['10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['198.51.100.1, nonsense', '10.0.0.1'],
    ['198.51.100.1, unknown, 10.0.0.2', '10.0.0.2'],
    [',', '10.0.0.1'],
  ])('behaviour: behind a trusted proxy the address %s counts as %s', (forwarded, expected) => {
    expect(group('10.0.0.1', forwarded)).toBe(expected);
  });
});

describe('admission', () => {
  const OPTIONS: AdmissionOptions = {
    payments: 3,
    paymentsPerClient: 2,
    refusedPaymentsPerClient: 0,
    challengesPerClient: { perMinute: 60, burst: 2, clients: 100 },
  };
  type Asked = Parameters<Admission['admit']>[1];
  const from = (remoteAddress: string): Asked => ({ socket: { remoteAddress }, headers: {} });
  const make = (options: Partial<AdmissionOptions> = {}): Admission['admit'] =>
    createAdmission({ ...OPTIONS, ...options }, createTrust([]), () => 0).admit;
  const verdict = (kind: 'demand' | 'verify' | 'refuse'): PaywallVerdict => ({ kind }) as PaywallVerdict;
  const codeOf = (admitted: ReturnType<ReturnType<typeof make>>): string =>
    typeof admitted === 'object' ? admitted.code : typeof admitted;

  test('refuses: one challenge more than the burst, of that client alone, with when to come back', () => {
    const admit = make();
    const codes = ['a', 'a', 'a', 'b'].map((client) => codeOf(admit(verdict('demand'), from(client))));
    expect(codes).toEqual(['undefined', 'undefined', 'too_many_challenges', 'undefined']);
    expect(admit(verdict('demand'), from('a'))).toMatchObject({ retryAfter: 1 });
    expect(codeOf(admit(verdict('refuse'), from('a')))).toBe('undefined');
    expect(codeOf(admit(verdict('verify'), from('a')))).toBe('function');
  });

  test('behaviour: challenges have no limit if no rate is configured', () => {
    const admit = make({ challengesPerClient: { perMinute: 0, burst: 1, clients: 2 } });
    for (let i = 0; i < 100; i++) expect(admit(verdict('demand'), from('a'))).toBeUndefined();
  });

  test('refuses: one payment more than the limit of a client, then than that of all, until one is over', () => {
    const admit = make();
    const first = admit(verdict('verify'), from('a'));
    admit(verdict('verify'), from('a'));
    expect(codeOf(admit(verdict('verify'), from('a')))).toBe('too_many_payments');
    admit(verdict('verify'), from('b'));
    expect(codeOf(admit(verdict('verify'), from('c')))).toBe('too_many_requests_in_flight');
    if (typeof first === 'function') first();
    expect(codeOf(admit(verdict('verify'), from('a')))).toBe('function');
    expect(codeOf(admit(verdict('verify'), from('a')))).toBe('too_many_requests_in_flight');
  });

  test('behaviour: one client may have all payments in flight if there is no limit per client', () => {
    const admit = make({ paymentsPerClient: 0 });
    expect([1, 2, 3, 4].map(() => codeOf(admit(verdict('verify'), from('a'))))).toEqual([
      'function',
      'function',
      'function',
      'too_many_requests_in_flight',
    ]);
  });

  test('refuses: payments of a client that had as many refused within a minute, for what is left of that minute', () => {
    let now = 0;
    const { admit, refused } = createAdmission(
      { ...OPTIONS, payments: 1000, paymentsPerClient: 0, refusedPaymentsPerClient: 3 },
      createTrust([]),
      () => now,
    );
    const pays = (client: string): string => codeOf(admit(verdict('verify'), from(client)));
    for (const at of [1000, 2000, 3000]) {
      now = at;
      expect(pays('a')).toBe('function');
      refused(from('a'));
    }
    now = 20_500;
    expect(admit(verdict('verify'), from('a'))).toMatchObject({
      code: 'too_many_payments',
      retryAfter: 41,
    });
    expect(pays('b')).toBe('function');
    expect(codeOf(admit(verdict('demand'), from('a')))).toBe('undefined');
    now = 60_999;
    expect(pays('a')).toBe('too_many_payments');
    now = 61_000;
    expect(pays('a')).toBe('function');
    refused(from('a'));
    expect(pays('a')).toBe('function');
  });

  test('behaviour: a payment that is turned away was not looked up: it is not called one that was not charged, but asked for again', () => {
    const limited = createAdmission({ ...OPTIONS, refusedPaymentsPerClient: 1 }, createTrust([]), () => 0);
    limited.refused(from('c'));
    const [all, own] = [make({ payments: 0 }), make({ paymentsPerClient: 1 })];
    own(verdict('verify'), from('b'));
    for (const [admit, client] of [[all, 'a'] as const, [own, 'b'] as const, [limited.admit, 'c'] as const]) {
      const { detail } = admit(verdict('verify'), from(client)) as Problem;
      expect(detail).toMatch(/so this one was not looked at\. Send the same request with the same payment again/);
      expect(detail).not.toContain('charged');
    }
  });

  test('behaviour: a client may have as many payments refused as it likes if there is no limit on them', () => {
    const { admit, refused } = createAdmission(
      { ...OPTIONS, payments: 1000, paymentsPerClient: 0 },
      createTrust([]),
      () => 0,
    );
    for (let i = 0; i < 100; i++) {
      expect(codeOf(admit(verdict('verify'), from('a')))).toBe('function');
      refused(from('a'));
    }
  });
});
