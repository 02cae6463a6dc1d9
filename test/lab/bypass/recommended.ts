// Which profile `tollgate probe` recommends for an upstream, asked the way a person asks.
import { execFile } from 'node:child_process';
import { programBuild } from '../../support/build.ts';

/** Literals with capitals, a mark, a dot and a space, and a parameter. What an upstream lacks tells nothing. */
const PATHS = ['/v1/export', '/v1/Kiss/Data', '/v1/daily_report', '/v1/data.json', '/v1/my%20report', '/v1/reports/q3'];
const { main: MAIN } = programBuild();

export async function recommendedProfile(port: number): Promise<string> {
  const args = [MAIN, 'probe', '--json', '--upstream', `http://127.0.0.1:${port}`];
  // Its exit code says whether a profile is safe; where none is `unknown` is what it names.
  const output = await new Promise<string>((resolve) => {
    const argv = [...args, ...PATHS.flatMap((each) => ['--path', each])];
    execFile(process.execPath, argv, { maxBuffer: 1e8 }, (_, stdout) => resolve(stdout));
  });
  const { recommended } = JSON.parse(output) as { recommended: { upstream_profile: string } };
  return recommended.upstream_profile;
}
