// A worker that serves next to nothing, as fast to start as a process can be: `/` says who serves, `/slow` after a while. What it
// is given says how it behaves.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { LISTENER_REFUSALS } from '../../src/domain/problem.ts';
import { createLog } from '../../src/host/log.ts';
import { createListener, type Listener } from '../../src/host/server.ts';
import type { Order } from '../../src/workers/channel.ts';
import { runWorker } from '../../src/workers/worker-channel.ts';

const SLOW_MS = 300;

process.on('disconnect', () => process.exit(70));
let told = 'nothing';
const serve = (headersMs: number, freshMs: number): Listener =>
  createListener(
    {
      name: 'proxy',
      listen: { host: '', port: 0 },
      limits: { headers: 16_384, connections: 1_000 },
      timeouts: { headersMs, idleMs: 60_000, freshMs },
      refusals: LISTENER_REFUSALS,
      log: createLog('error', () => undefined, Date.now),
    },
    {
      request: (req: IncomingMessage, res: ServerResponse) => {
        const text = `${process.argv[2]} ${told}`;
        if (req.url === '/slow') setTimeout(() => res.end(text), SLOW_MS);
        else res.end(text);
      },
    },
  );
const code = await runWorker(
  {
    send: (report, sent = () => undefined) => void process.send?.(report, undefined, undefined, sent),
    onMessage: (hear) => void process.on('message', (message, socket) => hear(message as Order, socket)),
  },
  async ({ given }) => {
    if (given === `fails ${process.argv[2]}`) throw new Error('it was told not to');
    told = given;
    const listener = serve(given === 'hasty' ? 300 : 60_000, given === 'patient' ? 60_000 : 100);
    listener.open();
    return {
      take: listener.take,
      complete: Promise.resolve(),
      open: listener.connections,
      says: () => told,
      prepare: async (next) => {
        if (next === `refused by ${process.argv[2]}`) throw new Error('not this one');
        if (next === `ignored by ${process.argv[2]}`) await new Promise(() => undefined);
        return () => void (told = next);
      },
      publish: () => undefined,
      report: async () => '[]',
      notice: () => undefined,
      answer: async (question) => `${process.argv[2]}: ${question}`,
      drain: listener.announceEnd,
      close: (withinMs) => listener.drain(0, withinMs),
    };
  },
  69,
);
process.exit(code);
