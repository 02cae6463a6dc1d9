// A process with a ledger of its own, for tests that kill it or take its disk away: `claim N` on standard input claims
// the Nth payment and says on standard output what became of it, once it is durable.
import { createInterface } from 'node:readline';
import { createLog } from '../../src/host/log.ts';
import { openLedger } from './sqlite-ledger.ts';
import { claimOf } from '../cases/claims.ts';

const log = createLog('error', () => undefined, Date.now);
const ledger = openLedger(process.argv[2] ?? '', { now: Date.now, log });
const say = (n: number, what: string): void => void process.stdout.write(`${n} ${what}\n`);

createInterface(process.stdin).on('line', (line) => {
  const n = Number(line.split(' ')[1]);
  const options = { owner: 'process', leaseMs: 60_000, maxUnsettledPerPayer: 8 };
  ledger.claim(claimOf(n), options).then(
    ({ kind }) => say(n, kind),
    (error: unknown) => say(n, error instanceof Error ? error.name : 'failed'),
  );
});
process.stdout.write('ready\n');
