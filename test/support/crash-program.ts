// The program as main.ts runs it, but that `serve` has a crash point around its ledger and rail.
import type { Command } from '../../src/cli/command.ts';
import { runProgram } from '../../src/cli/entry.ts';
import { runServe, serve, startUnderLock } from '../../src/cli/serve.ts';
import { createCrashPoint } from './crash-point.ts';
import packageFile from '../../package.json' with { type: 'json' };

const crashing: Command = {
  ...serve,
  run: (args, io) =>
    runServe(args, io, async (config, deps) => {
      const aroundPayments = createCrashPoint(process.env, deps.log);
      return startUnderLock(config, { ...deps, aroundPayments });
    }),
};
const exitNow = (code: number): never => process.exit(code);
process.exit(
  await runProgram({
    argv: process.argv.slice(2),
    packageFile: JSON.stringify(packageFile),
    exitNow,
    commands: [crashing],
  }),
);
