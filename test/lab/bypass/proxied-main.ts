// `npm run test:proxied -- --cases N --seed S`: the bypass cases through every proxy that is installed, with the shipped
// configurations, behind each of them every router of the development dependencies. Exit code 1 on any fault.
import { parseArgs } from 'node:util';
import { isInstalled, PROGRAMS } from '../../support/shipped-proxy.ts';
import { casesOf } from './corpus.ts';
import { proxiedFaults, runProxied } from './proxied.ts';
import { REGRESSIONS } from './regressions.ts';
import { SILENCE_MS } from './send.ts';
import { NPM } from './upstreams/npm.ts';

const { values } = parseArgs({
  options: { cases: { type: 'string', default: '400' }, seed: { type: 'string', default: '1' } },
});
// A router of this process may throw outside of any request; that is its own affair.
process.on('uncaughtException', (error) => console.error('a router threw:', error));

const programs = PROGRAMS.filter(isInstalled);
for (const { name } of PROGRAMS) if (!programs.some((each) => each.name === name)) console.log(`skipped: ${name}`);
const rows = await runProxied({
  ...{ programs, routers: NPM, silenceMs: SILENCE_MS, slashes: ['strict', 'kept'] },
  drafts: [...REGRESSIONS, ...casesOf(Number(values.seed), Number(values.cases))],
  progress: ({ proxy, slashes, cases, asked, allowed, forwarded, executions, undecided }) =>
    console.log(
      `${proxy} (${slashes}): ${cases} cases, ${asked} asked, ${allowed} allowed, ${forwarded} forwarded, ${executions} unpaid executions, ${undecided.length} forwarded and not allowed as that`,
    ),
});
const faults = proxiedFaults(rows);
for (const fault of faults) console.error(fault);
process.exit(faults.length === 0 ? 0 : 1);
