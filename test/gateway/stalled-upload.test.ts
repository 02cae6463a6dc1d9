// An upload that stops half-way: whose fault it is decides how it ends. The client's stall is never told as the upstream's.
import { expect, it } from 'vitest';
import { createStages, head } from '../support/stages.ts';

const { stage } = createStages();
const UPLOAD = head('POST', 'Content-Length: 10');

it('behaviour: the client stopped: its listener ends it, no 504 blames the upstream', async () => {
  const { client } = await stage(() => undefined, { timeouts: { idleMs: 40 }, listenerTimeouts: { idleMs: 300 } });
  const stopped = await client();
  stopped.send(`${UPLOAD}half`);
  await stopped.closed;
  expect(stopped.received()).toBe('');
});
