// A worker's process: started by its primary, told everything over the channel to it, and ended by it alone. It ends at once
// when the primary is gone.
import type { Report, Order } from './workers/channel.ts';

const DEFECT = 70;

// A terminal sends them to all processes at once; what they mean the primary says.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('disconnect', () => process.exit(DEFECT));
if (process.send === undefined) {
  process.stderr.write('a worker is started by `tollgate serve`, never by itself\n');
  process.exit(DEFECT);
}
// The reader of our output may end first.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
const { runWorkerProgram } = await import('./cli/worker.ts');
const code = await runWorkerProgram(
  {
    send: (message: Report, sent = () => undefined) => void process.send?.(message, undefined, undefined, sent),
    onMessage: (listener) => void process.on('message', (message, socket) => listener(message as Order, socket)),
  },
  Number(process.argv[2]),
);
process.exit(code);
