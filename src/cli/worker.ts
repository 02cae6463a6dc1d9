// The program of a worker: its log, and what it is told over the channel to the process that started it.
import type { Config, LoadedConfig } from '../config/config.ts';
import { readGiven } from '../compose/workers/worker-bootstrap.ts';
import { createRandom, systemClock } from '../host/clock.ts';
import { collectGarbage } from '../host/collect-garbage.ts';
import { gatherLines } from '../host/lines.ts';
import { createLog } from '../host/log.ts';
import { openStandardOutput } from '../host/standard-output.ts';
import { runWorker, type Channel } from '../workers/worker-channel.ts';
import { EXIT } from './command.ts';
import { createTextLog, takesColors } from './text-log.ts';

/** Resolves with its exit code. */
export function runWorkerProgram(channel: Channel, worker: number): Promise<number> {
  const standardOutput = openStandardOutput();
  const output = gatherLines(standardOutput.write);
  // The exit event also comes after an exception that was not caught.
  process.on('exit', () => {
    output.flush();
    standardOutput.end();
  });
  let settings: LoadedConfig['log'] | undefined;
  const shown = process.stdout.isTTY;
  const forPeople = createTextLog(takesColors({ terminal: { attended: false, shown }, env: process.env }));
  const isText = (): boolean => settings?.format === 'text' || (settings?.format === 'auto' && shown);
  const log = createLog(
    () => settings?.level ?? 'info',
    output.write,
    systemClock.now,
    () => (isText() ? forPeople : undefined),
    worker,
  );
  const onTaken = (config: Config): void => {
    settings = config.log;
  };
  return runWorker(
    channel,
    async ({ run, given }) => {
      const { startWorker } = await import('../compose/workers/worker.ts');
      const deps = { log, clock: systemClock, random: createRandom(), onTaken };
      const served = await startWorker(readGiven(given), run, deps);
      collectGarbage();
      return served;
    },
    EXIT.away,
  );
}
