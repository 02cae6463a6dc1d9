// Keys of a later version: known by name, and refused, so that no operator believes that they are in force.
// The schema never sees them, so it does not call them unknown.
import type { Issue } from './problems.ts';

/** Section -> advice. */
const LATER: Readonly<Record<string, string>> = {
  decision: 'take it out and let the proxy forward',
};

/** Takes keys of a later version out of `data`, which it changes, and complains about each. */
export function takeLaterKeys(data: Record<string, unknown>): Issue[] {
  const issues: Issue[] = [];
  for (const [section, advice] of Object.entries(LATER)) {
    if (!Object.hasOwn(data, section)) continue;
    issues.push({ path: [section], message: `is not in this version; ${advice}`, at: 'key' });
    delete data[section];
  }
  return issues;
}
