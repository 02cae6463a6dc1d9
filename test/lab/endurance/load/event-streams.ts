// Event streams of one API key, from a process of their own: `node load/event-streams.ts PORT COUNT KEY`. Asks for so many
// at once and keeps what it gets. Says what the answers were, then, for every line that it reads, how many streams are open
// and how many have had an event. Ends when its input ends.
import { connect } from 'node:net';

const [port = '0', wanted = '0', key = ''] = process.argv.slice(2);
const BATCH = 250;
const statuses = new Map<string, number>();
let open = 0;
let heard = 0;

function one(): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port: Number(port), host: '127.0.0.1' });
    let text = '';
    let status = '';
    let told = false;
    socket.once('connect', () =>
      socket.write(`GET /v1/protected-routes/events HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${key}\r\n\r\n`),
    );
    socket.on('data', (data: Buffer) => {
      text = (text + data.toString('latin1')).slice(-2000);
      if (status === '') {
        status = text.slice(9, 12);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status === '200') open++;
        resolve();
      }
      if (!told && text.includes('event: route.')) {
        told = true;
        heard++;
      }
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (status === '200') open--;
      else if (status === '') statuses.set('closed', (statuses.get('closed') ?? 0) + 1);
      resolve();
    });
  });
}

for (let made = 0; made < Number(wanted); made += BATCH) {
  await Promise.all(Array.from({ length: Math.min(BATCH, Number(wanted) - made) }, one));
}
const say = (): void =>
  void process.stdout.write(`${JSON.stringify({ open, heard, statuses: Object.fromEntries(statuses) })}\n`);
say();
process.stdin.on('data', say);
process.stdin.on('end', () => process.exit(0));
