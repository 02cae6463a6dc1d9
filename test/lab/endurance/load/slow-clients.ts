// Connections that send their headers a byte at a time, from a process of their own: `node load/slow-clients.ts PORT COUNT
// EVERY_MS`. Whoever is cut off comes back, so that there are always so many. Says on standard output, for every line that
// it reads, how many are open and how many were told 408 so far. Ends when its input ends.
import { connect, type Socket } from 'node:net';

const [port = '0', wanted = '0', everyMs = '1000'] = process.argv.slice(2);
const HEAD = 'GET /free HTTP/1.1\r\nHost: h\r\nX-Slow: ';
const BATCH = 250;
const AGAIN_MS = 100;

type Slow = { readonly socket: Socket; sent: number };
const open = new Set<Slow>();
let told = 0;
let others = 0;

function one(): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port: Number(port), host: '127.0.0.1', noDelay: true });
    const slow: Slow = { socket, sent: 0 };
    socket.once('connect', () => {
      open.add(slow);
      resolve();
    });
    socket.once('data', (data: Buffer) => {
      if (data.toString('latin1', 0, 12) === 'HTTP/1.1 408') told++;
      else others++;
      socket.resume();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      open.delete(slow);
      resolve();
      setTimeout(() => void one(), AGAIN_MS);
    });
  });
}

for (let made = 0; made < Number(wanted); made += BATCH) {
  await Promise.all(Array.from({ length: Math.min(BATCH, Number(wanted) - made) }, one));
}
const say = (): void => void process.stdout.write(`${JSON.stringify({ open: open.size, told, others })}\n`);
say();
setInterval(() => {
  for (const slow of open) {
    slow.socket.write(slow.sent < HEAD.length ? (HEAD[slow.sent] ?? 'y') : 'y');
    slow.sent++;
  }
}, Number(everyMs));
process.stdin.on('data', say);
process.stdin.on('end', () => process.exit(0));
