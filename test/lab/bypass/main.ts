// `npm run test:bypass -- --cases N --seed S [--upstream TEXT] [--json FILE]`: the long tier. Exit code 1 where anything
// ran unpaid under `undeclared_methods: pay`, or where an upstream saw more requests than the proxy forwarded.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { describeDraft } from './draft.ts';
import { formatReport } from './report.ts';
import { faults, runSuite } from './suite.ts';
import { ALL } from './upstreams/all.ts';

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: '2000' },
    seed: { type: 'string', default: '1' },
    upstream: { type: 'string', multiple: true, default: [] },
    only: { type: 'string' },
    json: { type: 'string' },
  },
});

const number = (name: 'cases' | 'seed'): number => {
  const value = Number(values[name]);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} takes a whole number`);
  return value;
};

// An upstream of this process may throw outside of any request; that is its own affair.
process.on('uncaughtException', (error) => console.error('an upstream threw:', error));

const wanted = ALL.filter(
  ({ name }) => values.upstream.length === 0 || values.upstream.some((part) => name.includes(part)),
);
const report = await runSuite({
  upstreams: wanted,
  seed: number('seed'),
  cases: number('cases'),
  ...(values.only === undefined ? {} : { only: values.only }),
  progress: (line) => console.error(line),
});
console.log(formatReport(report));
const found = report.rows.map(({ passage, ...row }) => ({
  ...row,
  ...passage,
  found: passage.found.map(describeDraft),
}));
if (values.json !== undefined)
  writeFileSync(values.json, `${JSON.stringify({ ...report, rows: found }, undefined, 2)}\n`);
const wrong = faults(report);
for (const fault of wrong) console.error(fault);
process.exit(wrong.length === 0 ? 0 : 1);
