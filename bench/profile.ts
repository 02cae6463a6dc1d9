// Where the time went: reads V8's CPU profiles and lists the functions that took the most by themselves. For
// `npm run bench -- --profile`; idle time is left out, and so is what a server did before it was measured.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { table } from './report.ts';

type Frame = { readonly functionName: string; readonly url: string; readonly lineNumber: number };
type Profile = {
  readonly nodes: readonly { readonly id: number; readonly callFrame: Frame }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
  /** Microseconds of the monotonic clock that `process.hrtime` reads too. */
  readonly startTime: number;
};

const SHOWN = 25;
const IDLE = new Set(['(idle)', '(root)']);

/** Flags for a Node process that is to leave its profile, and those of its threads, in a folder of its own name. */
export function profilingFlags(profiles: string | undefined, name: string): string[] {
  if (profiles === undefined) return [];
  return ['--cpu-prof', `--cpu-prof-dir=${path.join(profiles, name.replaceAll(/[^a-z0-9@.-]+/gi, '-'))}`];
}

/** Self time by function from `sinceUs` on, the most first, as percent of the time that was not idle. */
export function summarizeProfile(profile: Profile, sinceUs = 0): { readonly name: string; readonly percent: number }[] {
  const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const times = new Map<string, number>();
  let busy = 0;
  let at = profile.startTime;
  for (const [index, sample] of profile.samples.entries()) {
    const name = names.get(sample) ?? '(unknown)';
    const delta = profile.timeDeltas[index] ?? 0;
    at += delta;
    if (at < sinceUs || IDLE.has(name)) continue;
    busy += delta;
    times.set(name, (times.get(name) ?? 0) + delta);
  }
  return [...times]
    .map(([name, time]) => ({ name, percent: (100 * time) / busy }))
    .sort((a, b) => b.percent - a.percent);
}

/** The profiles in `folder` as Markdown. */
export function renderProfiles(folder: string, sinceUs: number): string {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.cpuprofile'))
    .sort();
  return files
    .map((file) => {
      const profile: Profile = JSON.parse(readFileSync(path.join(folder, file), 'utf8'));
      const rows = summarizeProfile(profile, sinceUs).slice(0, SHOWN);
      return `### ${path.join(folder, file)}\n\n${table(
        ['function', 'self %'],
        rows.map(({ name, percent }) => [name, percent.toFixed(1)]),
      )}`;
    })
    .join('\n\n');
}

function nameOf({ functionName, url, lineNumber }: Frame): string {
  if (functionName.startsWith('(')) return functionName;
  const file = url.replace(/^file:\/\//, '').replace(/^.*\/(src|node_modules|bench)\//, '$1/');
  return `${functionName || '(anonymous)'} ${file === '' ? '' : `${file}:${lineNumber + 1}`}`.trim();
}
