// Responses in memory: how much of them there may be, and for how long they can be had again.
import { expect, it } from 'vitest';
import { createReplays, createResponseMemory, KeptResponse } from '../../../src/gateway/pay/kept-responses.ts';

const KEY = { credentialSha256: 'a', method: 'GET', targetSha256: '/x' };
const OF = { chargeId: 'chg_1', routeId: 'r' };

function stage(maxBytes?: number): {
  memory: ReturnType<typeof createResponseMemory>;
  replays: ReturnType<typeof createReplays>;
  keep: (body: string, limit?: number) => KeptResponse;
  pass: (ms: number) => void;
  timers: () => number;
} {
  let now = 0;
  let timers: { at: number; run: () => void }[] = [];
  const memory = createResponseMemory(maxBytes);
  const replays = createReplays(
    (ms, run) => {
      timers.push({ at: now + ms, run });
      return () => undefined;
    },
    () => now,
  );
  return {
    memory,
    replays,
    keep: (body, limit = 100) => {
      const kept = new KeptResponse(memory, limit);
      kept.begin(200, ['Content-Type', 'text/plain', 'Content-Length', '9', 'X-Request-Id', 'old', 'ETag', '"e"']);
      for (const letter of body) kept.add(Buffer.from(letter));
      return kept;
    },
    pass: (ms) => {
      now += ms;
      const due = timers.filter(({ at }) => at <= now);
      timers = timers.filter(({ at }) => at > now);
      for (const { run } of due) run();
    },
    timers: () => timers.length,
  };
}

it('behaviour: a kept response comes back as it was, but for what a replay has of its own', () => {
  const { replays, keep } = stage();
  replays.remember(KEY, keep('hello'), OF);
  expect(replays.find(KEY)).toEqual({
    ...OF,
    response: { status: 200, headers: ['Content-Type', 'text/plain', 'ETag', '"e"'], body: Buffer.from('hello') },
  });
});

it('attack: nobody else gets a kept response, and its payer gets it for nothing else', () => {
  const { replays, keep } = stage();
  replays.remember(KEY, keep('hello'), OF);
  for (const other of [{ credentialSha256: 'b' }, { method: 'HEAD' }, { targetSha256: '/y' }])
    expect(replays.find({ ...KEY, ...other })).toBeUndefined();
});

it('behaviour: responses are kept for 60 s, each from its own last byte, and one timer waits for all of them', () => {
  const { memory, replays, keep, pass, timers } = stage(4_000);
  replays.remember(KEY, keep('one'), OF);
  pass(20_000);
  replays.remember({ ...KEY, credentialSha256: 'b' }, keep('two'), OF);
  expect(timers()).toBe(1);
  pass(39_999);
  expect(replays.find(KEY)).toBeDefined();
  pass(1);
  expect([replays.find(KEY), replays.find({ ...KEY, credentialSha256: 'b' })?.response.body.toString()]).toEqual([
    undefined,
    'two',
  ]);
  expect(timers()).toBe(1);
  pass(20_000);
  expect([replays.find({ ...KEY, credentialSha256: 'b' }), timers()]).toEqual([undefined, 0]);
  expect(memory.take(4_000)).toBe(true);
});

it('refuses: to keep a body over the limit, and one that the process has no room for', () => {
  const { memory, keep } = stage(4_000);
  expect([keep('12345', 5).isKept, keep('123456', 5).isKept]).toEqual([true, false]);
  expect(keep('x').isKept).toBe(true);
  expect(keep('x').isKept).toBe(false);
  expect(memory.take(2_100)).toBe(false);
});

it('behaviour: a kept response that is dropped gives its bytes back, once', () => {
  const { memory, keep } = stage(4_000);
  const kept = keep('hello');
  kept.drop();
  kept.drop();
  expect(memory.take(4_000)).toBe(true);
  expect(memory.take(1)).toBe(false);
});
