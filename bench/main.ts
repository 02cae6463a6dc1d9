// `npm run bench`: measures what Tollgate costs and writes it down. One scenario after the other, everything in processes
// of their own that end with it; this process only conducts. Exit code 0 where everything was measured, 1 where an answer
// was wrong or a request failed, 64 for a command line that cannot be.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { platform, tmpdir } from 'node:os';
import path from 'node:path';
import { checkOut, describeWorkingTree, type Revision } from './checkout.ts';
import { helpText, readOptions, type Options } from './flags.ts';
import { describeMachine } from './machine.ts';
import { installPeers } from './peers/peers.ts';
import { renderProfiles } from './profile.ts';
import { renderJson, renderMarkdown, TABLE, type Report } from './markdown.ts';
import { renderSection, type Section } from './report.ts';
import { SCENARIOS } from './scenarios.ts';
import { mainCount, openUpstream, type Stage } from './stage.ts';
import { plotSection, plotTable } from './svg.ts';
import { judge } from './table.ts';

const REMARKS = [
  'The figure to trust is CPU per request: user and system time of the server process over the requests it answered. 1,000,000 over it is what one core can serve.',
  'Ratios are taken round by round between neighbours in time; above 1 means cheaper than the row they are named for. Compare within one run only.',
  'Everything is on the loopback interface of one machine: no network, no TLS, no container, and neither log shipping nor scraping beside it.',
  'Paid requests meet a facilitator that answers at once: a real one takes tens of milliseconds, which is waiting and not work.',
  'One process each, on one core; the load and the upstream share another one. Where the core used is well below 100 %, requests/s is theirs.',
  'The upstream answers constant bytes at once; a slower one makes every proxy look more alike.',
];

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
  for (const file of [parsed.options.markdown, parsed.options.json])
    if (file !== undefined) mkdirSync(path.dirname(file), { recursive: true });
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
  return write(report, parsed.options);
}

async function measure(
  options: Options,
  argv: readonly string[],
  folder: string,
  revision: Revision | undefined,
): Promise<Report> {
  const root = path.resolve(import.meta.dirname, '..');
  const others = [
    ...options.checkouts.map((folder) => ({
      suffix: ` @${path.basename(path.resolve(folder))}`,
      root: path.resolve(folder),
    })),
    ...(revision === undefined ? [] : [{ suffix: ` @${revision.name}`, root: revision.root }]),
  ];
  const { peersWanted } = options;
  const wants = (peer: string): boolean =>
    peersWanted === undefined ? others.length === 0 : peersWanted.some((wanted) => peer.includes(wanted));
  const startedAt = new Date().toISOString();
  const sections: Section[] = [];
  const { upstream, witness } = await openUpstream();
  try {
    for (const { name, run } of SCENARIOS) {
      if (!options.only.includes(name)) continue;
      say(`scenario ${name}`);
      const startedMs = performance.now();
      let begunUs = 0;
      const stage: Stage = {
        plan: options.plan,
        checkouts: [{ suffix: '', root }, ...others],
        wants,
        upstream,
        witness,
        folder,
        profiles: options.profile ? profileFolder(name) : undefined,
        begun: () => (begunUs = Number(process.hrtime.bigint() / 1000n)),
        say: (line) => say(`  ${name}: ${line}`),
      };
      const section = await run(stage);
      say(`\n${renderSection(section)}\n`);
      say(`${name}: ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
      if (stage.profiles !== undefined) say(renderProfiles(stage.profiles, begunUs));
      sections.push(section);
    }
  } finally {
    await upstream.stop();
  }
  const { counts } = options.plan;
  const verdicts = judge(sections, {
    least: Math.min(...counts),
    main: mainCount(options.plan),
    most: Math.max(...counts),
  }).filter(({ standing }) => others.length === 0 || standing !== 'not measured');
  return {
    revision: describeWorkingTree(),
    against: others.length === 0 ? undefined : others.map(({ suffix }) => suffix.slice(2)).join(', '),
    startedAt,
    command: ['npm run bench', ...(argv.length > 0 ? ['--', ...argv] : [])].join(' '),
    machine: describeMachine(),
    verdicts,
    sections,
    remarks: options.profile ? [...REMARKS, 'Measured with the profiler on: only the shares mean something.'] : REMARKS,
  };
}

function write(report: Report, { json, markdown }: Options): number {
  const plots = markdown === undefined ? [] : plot(report);
  const named = plots.map(({ section }) => ({ section, file: plotFile(markdown ?? '', section) }));
  const text = renderMarkdown(
    report,
    named.map(({ section, file }) => ({ section, file: path.basename(file) })),
  );
  process.stdout.write(text);
  if (markdown !== undefined) writeFileSync(markdown, text);
  for (const [index, { file }] of named.entries()) writeFileSync(file, plots[index]?.svg ?? '');
  if (json !== undefined) writeFileSync(json, renderJson(report));
  const faults = report.sections.flatMap(({ skipped }) => skipped.filter(({ fault }) => fault));
  for (const { name, reason } of faults) say(`NOT AS IT SHOULD BE: ${name}: ${reason}`);
  return faults.length === 0 ? 0 : 1;
}

/** `bench.md` has its plots in `bench-table.svg`, `bench-free.svg` and so on. */
function plotFile(markdown: string, section: string): string {
  const { dir, name } = path.parse(markdown);
  return path.join(dir, `${name}-${section}.svg`);
}

function plot({ verdicts, sections, machine, revision, startedAt }: Report): { section: string; svg: string }[] {
  const about = `Tollgate ${revision}, ${startedAt.slice(0, 10)}, ${machine.cpu}, Node ${machine.node}`;
  const whole = verdicts.length === 0 ? [] : [{ section: TABLE, svg: plotTable(verdicts, about) }];
  return whole.concat(
    sections.flatMap((section) => {
      const svg = plotSection(section, about);
      return svg === undefined ? [] : [{ section: section.name, svg }];
    }),
  );
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
