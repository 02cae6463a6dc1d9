// `npm run bench`: measures what Tollgate costs and writes it down. One scenario after the other, everything in processes
// of their own that end with it; this process only conducts. Exit code 0 where everything was measured, 1 where an answer
// was wrong or a request failed, 64 for a command line that cannot be.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { platform, setPriority, tmpdir } from 'node:os';
import path from 'node:path';
import { checkOut, describeWorkingTree, type Revision } from './checkout.ts';
import { helpText, readOptions, type Options } from './flags.ts';
import { describeMachine } from './machine.ts';
import { installPeers } from './peers/peers.ts';
import { build } from './program.ts';
import { renderProfiles } from './profile.ts';
import { renderMarkdown, type Report } from './markdown.ts';
import { renderSection, type Section } from './report.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';
import { openUpstream, type Checkout, type Stage } from './stage.ts';
import { judge } from './table.ts';
import { writeReport } from './write.ts';

const REMARKS = [
  'The figure to trust is CPU per request: user and system time of the server process over the requests it answered. 1,000,000 over it is what one core can serve.',
  'Ratios are taken round by round between neighbours in time; above 1 means cheaper than the row they are named for. Compare within one run only.',
  'Everything is on the loopback interface of one machine: no network, no TLS, no container, and neither log shipping nor scraping beside it.',
  'Paid requests meet a facilitator that answers at once: a real one takes tens of milliseconds, which is waiting and not work.',
  'One process each, on one core; the load and the upstream share another one. Where the core used is well below 100 %, requests/s is theirs.',
  'The upstream answers constant bytes at once; a slower one makes every proxy look more alike.',
];

const PRIORITY = -15;
const AUTOGROUP = '/proc/self/autogroup';

process.exitCode = await main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<number> {
  const parsed = readOptions(argv);
  if (!parsed.ok) {
    for (const problem of parsed.problems) say(problem);
    say('See `npm run bench -- --help`.');
    return 64;
  }
  if (parsed.options.help) {
    process.stdout.write(`${helpText()}\n`);
    return 0;
  }
  if (platform() !== 'linux') {
    say('The bench reads CPU times from /proc: it needs Linux.');
    return 64;
  }
  if (parsed.options.peers) {
    say('installing peers');
    await installPeers();
  }
  // Whatever is started here takes it over.
  if (parsed.options.priority) goFirst();
  // Every process that runs is told when this one ends.
  process.setMaxListeners(100);
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-bench-'));
  // Where the bench is told to end, its servers end with it; see bench/process.ts.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  let revision: Revision | undefined;
  const clean = (): void => {
    revision?.remove();
    revision = undefined;
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', clean);
  const { against } = parsed.options;
  if (against !== undefined) revision = checkOut(against, folder);
  const report = await measure(parsed.options, argv, folder, revision);
  process.stdout.write(renderMarkdown(report, []));
  const faults = report.sections.flatMap(({ skipped }) => skipped.filter(({ fault }) => fault));
  for (const { name, reason } of faults) say(`NOT AS IT SHOULD BE: ${name}: ${reason}`);
  return faults.length === 0 ? 0 : 1;
}

async function measure(
  options: Options,
  argv: readonly string[],
  folder: string,
  revision: Revision | undefined,
): Promise<Report> {
  const checkouts = checkoutsOf(options, revision);
  for (const { root } of checkouts) {
    say(`building ${root}`);
    build(root);
  }
  const alone = checkouts.length === 1;
  const { peersWanted, plan } = options;
  const wants = (peer: string): boolean =>
    peersWanted === undefined || peersWanted.some((wanted) => peer.includes(wanted));
  const startedAt = new Date().toISOString();
  const sections: Section[] = [];
  const report = (): Report => ({
    revision: describeWorkingTree(),
    against: alone ? undefined : checkouts.flatMap(({ suffix }) => suffix.slice(2) || []).join(', '),
    startedAt,
    command: ['npm run bench', ...(argv.length > 0 ? ['--', ...argv] : [])].join(' '),
    machine: describeMachine(),
    verdicts: judge(sections).filter(({ standing }) => alone || standing !== 'not measured'),
    sections,
    remarks: options.profile ? [...REMARKS, 'Measured with the profiler on: only the shares mean something.'] : REMARKS,
  });
  const { upstream, witness } = await openUpstream();
  try {
    for (const scenario of SCENARIOS) {
      const { name } = scenario;
      if (!options.only.includes(name)) continue;
      say(`scenario ${name}`);
      const startedMs = performance.now();
      let begunUs = 0;
      const stage: Stage = {
        plan,
        checkouts,
        wants,
        upstream,
        witness,
        folder,
        profiles: options.profile ? profileFolder(name) : undefined,
        begun: () => (begunUs = Number(process.hrtime.bigint() / 1000n)),
        say: (line) => say(`  ${name}: ${line}`),
      };
      const section = await runScenario(scenario, stage);
      say(`\n${renderSection(section)}\n`);
      say(`${name}: ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
      if (stage.profiles !== undefined) say(renderProfiles(stage.profiles, begunUs));
      sections.push(section);
      writeReport(report(), options);
    }
  } finally {
    await upstream.stop();
  }
  return report();
}

/** A scenario that cannot be run at all must not take the others with it. */
async function runScenario({ name, run }: Scenario, stage: Stage): Promise<Section> {
  try {
    return await run(stage);
  } catch (error) {
    const reason = error instanceof Error ? error.message.replaceAll(/\s+/g, ' ').slice(0, 400) : 'it failed';
    return {
      name,
      title: `Scenario ${name}`,
      columns: [],
      rows: [],
      skipped: [{ name, reason, fault: true }],
      references: { key: '', rows: [] },
      pairs: [],
      remarks: [],
    };
  }
}

/** The working tree first. */
function checkoutsOf({ checkouts }: Options, revision: Revision | undefined): Checkout[] {
  const all: Checkout[] = [{ suffix: '', root: path.resolve(import.meta.dirname, '..') }];
  for (const folder of checkouts) {
    const root = path.resolve(folder);
    const suffix = ` @${path.basename(root)}`;
    // Two folders of one name.
    const taken = all.filter((other) => other.suffix.startsWith(suffix)).length;
    all.push({ suffix: taken === 0 ? suffix : `${suffix}-${taken + 1}`, root });
  }
  if (revision !== undefined) all.push({ suffix: ` @${revision.name}`, root: revision.root });
  return all;
}

/** Linux weighs sessions first where it groups processes by them, and only then the processes in one. */
function goFirst(): void {
  setPriority(PRIORITY);
  if (!existsSync(AUTOGROUP)) return;
  const before = /nice (-?\d+)/.exec(readFileSync(AUTOGROUP, 'utf8'))?.[1] ?? '0';
  writeFileSync(AUTOGROUP, String(PRIORITY));
  process.once('exit', () => writeFileSync(AUTOGROUP, before));
}

/** Kept: it is what was asked for. */
function profileFolder(scenario: string): string {
  const folder = path.join(tmpdir(), `tollgate-profile-${process.pid}-${scenario}`);
  mkdirSync(folder, { recursive: true });
  return folder;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
