// When a facilitator is left alone, and how it comes back; and how many calls it can hold.
import { describe, expect, test } from 'vitest';
import { createBreaker } from '../../../src/gateway/rails/x402/circuit-breaker.ts';
import { createSemaphore } from '../../../src/gateway/rails/semaphore.ts';
import { fakeTime } from './kit.ts';

const OPTIONS = { failures: 3, openMs: 1000, maxOpenMs: 4000 };

describe('breaker', () => {
  const start = () => {
    const time = fakeTime();
    const breaker = createBreaker(time.clock, OPTIONS);
    const call = (operation: 'verify' | 'settle', end: 'answered' | 'slow' | 'none'): boolean => {
      const report = breaker.admit(operation);
      report?.(end);
      return report !== undefined;
    };
    const open = (): void => {
      for (let i = 0; i < OPTIONS.failures; i++) call('verify', 'slow');
    };
    return { time, breaker, call, open };
  };

  test('behaviour: a breaker opens after slow calls in a row, and not before', () => {
    const { call } = start();
    call('verify', 'slow');
    call('verify', 'slow');
    call('verify', 'answered');
    call('verify', 'slow');
    call('verify', 'slow');
    expect(call('verify', 'slow')).toBe(true);
    expect(call('verify', 'answered')).toBe(false);
  });

  test('behaviour: a breaker admits one trial at a time once its time is over', () => {
    const { time, breaker, open } = start();
    open();
    time.advance(999);
    expect(breaker.admit('verify')).toBeUndefined();
    time.advance(1);
    const trial = breaker.admit('verify');
    expect(trial).toBeDefined();
    expect(breaker.admit('verify')).toBeUndefined();
    trial?.('answered');
    expect(breaker.admit('verify')).toBeDefined();
    expect(breaker.admit('verify')).toBeDefined();
  });

  test('behaviour: a trial that fails doubles the time, up to a limit', () => {
    const { time, call, open } = start();
    open();
    for (const ms of [1000, 2000, 4000, 4000]) {
      time.advance(ms - 1);
      expect(call('verify', 'slow')).toBe(false);
      time.advance(1);
      expect(call('verify', 'slow')).toBe(true);
    }
  });

  test('behaviour: a trial that was not made lets the next one try', () => {
    const { time, call, open } = start();
    open();
    time.advance(1000);
    expect(call('verify', 'none')).toBe(true);
    expect(call('verify', 'answered')).toBe(true);
    expect(call('verify', 'answered')).toBe(true);
  });

  test('behaviour: a facilitator that verifies and never settles is left alone too', () => {
    const { time, call } = start();
    for (let i = 0; i < 3; i++) {
      call('verify', 'answered');
      call('settle', 'slow');
    }
    expect(call('verify', 'answered')).toBe(false);
    time.advance(1000);
    expect(call('verify', 'answered')).toBe(true);
    expect(call('settle', 'slow')).toBe(true);
    expect(call('verify', 'answered')).toBe(false);
  });

  test('behaviour: a late answer to a call from before closes an open breaker', () => {
    const { breaker, open } = start();
    const early = breaker.admit('verify');
    open();
    expect(breaker.admit('verify')).toBeUndefined();
    early?.('answered');
    expect(breaker.admit('verify')).toBeDefined();
  });
});

describe('semaphore', () => {
  const NEVER = new AbortController().signal;

  test('behaviour: a caller that comes when all places are taken waits, in order', async () => {
    const semaphore = createSemaphore(1, 2);
    const first = semaphore.take();
    expect(semaphore.take()).toBeUndefined();
    const order: string[] = [];
    const second = semaphore.wait(NEVER).then((release) => (order.push('second'), release));
    const third = semaphore.wait(NEVER).then((release) => (order.push('third'), release));
    first?.();
    (await second)?.();
    (await third)?.();
    expect(order).toEqual(['second', 'third']);
    expect(semaphore.take()).toBeDefined();
  });

  test('refuses: one caller more than may wait, at once', async () => {
    const semaphore = createSemaphore(1, 1);
    const first = semaphore.take();
    const waiting = semaphore.wait(NEVER);
    expect(await semaphore.wait(NEVER)).toBeUndefined();
    first?.();
    expect(await waiting).toBeDefined();
  });

  test('behaviour: a caller that runs out of time leaves the queue, and the place goes to the next', async () => {
    const semaphore = createSemaphore(1, 2);
    const first = semaphore.take();
    const impatient = new AbortController();
    const leaving = semaphore.wait(impatient.signal);
    const staying = semaphore.wait(NEVER);
    impatient.abort();
    expect(await leaving).toBeUndefined();
    first?.();
    (await staying)?.();
    expect(await semaphore.wait(impatient.signal)).toBeUndefined();
    expect(semaphore.take()).toBeDefined();
  });

  test('behaviour: a place given back twice is one place', () => {
    const semaphore = createSemaphore(1, 0);
    const release = semaphore.take();
    release?.();
    release?.();
    expect(semaphore.take()).toBeDefined();
    expect(semaphore.take()).toBeUndefined();
  });
});
