// `npm run test:endurance`: what strangers can use up, measured on a real process with load from other processes, on
// loopback alone. Prints a table; exit code 1 where a bound is broken. Needs as many open files as there are connections.
import { execFileSync } from 'node:child_process';
import { helpText, readOptions } from './flags.ts';
import { renderFindings } from './report.ts';
import { endure, SCENARIO_NAMES } from './run.ts';

/** Of either side, beside its connections. */
const OTHER_FILES = 500;

const read = readOptions(process.argv.slice(2), SCENARIO_NAMES);
switch (read.kind) {
  case 'help':
    console.log(helpText(SCENARIO_NAMES));
    break;
  case 'wrong':
    console.error(`${read.problems.join('\n')}\n\n${helpText(SCENARIO_NAMES)}`);
    process.exitCode = 64;
    break;
  case 'run': {
    const { plan, only } = read.options;
    // Node raises its own soft limit to the hard one.
    const files = Number(execFileSync('sh', ['-c', 'ulimit -Hn']).toString().trim()) || Infinity;
    const needed = plan.idle + plan.slow + OTHER_FILES;
    if (only.includes('connections') && files < needed) {
      console.error(
        `${needed} open files are needed and the limit is ${files}: ulimit -n ${needed}, or fewer by --idle and --slow`,
      );
      process.exitCode = 69;
      break;
    }
    const since = performance.now();
    const findings = await endure(plan, only, (line) => console.log(line));
    const broken = findings.filter(({ verdict }) => verdict === 'broken').length;
    console.log(
      `\n${renderFindings(findings)}\n\n${broken} bounds broken, ${((performance.now() - since) / 1000).toFixed(0)} s`,
    );
    if (broken > 0) process.exitCode = 1;
    break;
  }
  default:
    read satisfies never;
}
