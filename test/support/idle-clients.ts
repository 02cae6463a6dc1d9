// Thousands of connections from a process of their own: opens them in batches to the port it is given, lets each ask once
// where a request line is given, keeps them, and says how many are open. Ends when its input ends.
import { connect, type Socket } from 'node:net';

const [port = '0', wanted = '0', target = ''] = process.argv.slice(2);
const BATCH = 250;
const open = new Set<Socket>();

function one(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(port), host: '127.0.0.1' });
    socket.on('error', reject);
    socket.on('close', () => open.delete(socket));
    socket.once('connect', () => {
      open.add(socket);
      if (target === '') {
        resolve();
        return;
      }
      socket.write(`GET ${target} HTTP/1.1\r\nHost: h\r\n\r\n`);
      socket.once('data', () => {
        socket.resume();
        resolve();
      });
    });
  });
}

for (let made = 0; made < Number(wanted); made += BATCH) {
  await Promise.all(Array.from({ length: Math.min(BATCH, Number(wanted) - made) }, one));
}
process.stdout.write(`open ${open.size}\n`);
process.stdin.on('data', () => process.stdout.write(`open ${open.size}\n`));
process.stdin.on('end', () => process.exit(0));
