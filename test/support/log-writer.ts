// A process that logs, as a worker does: `node log-writer.ts NUMBER LINES`. Lines of every length, several in a turn.
import { createLog } from '../../src/host/log.ts';
import { gatherLines } from '../../src/host/lines.ts';
import { openStandardOutput } from '../../src/host/standard-output.ts';

const [worker = 0, lines = 0] = process.argv.slice(2).map(Number);
const standardOutput = openStandardOutput();
const output = gatherLines(standardOutput.write);
process.on('exit', () => {
  output.flush();
  standardOutput.end();
});
// As in the program: a pipe does not block from now on.
process.stdout.on('error', () => undefined);
const log = createLog('info', output.write, Date.now, undefined, worker);

let at = 0;
function turn(): void {
  for (const until = at + 1 + (at % 40); at < until && at < lines; at++) {
    const path = `/${'x'.repeat((at * 97) % 5000)}`;
    if (at % 10 === 0) log.warn('told at once', { at, path });
    else log.info('told', { at, path });
  }
  if (at < lines) setImmediate(turn);
}
turn();
