// Keys of a later version: known by name, and refused, so that no operator believes that they are in force.
import type { Issue } from './problems.ts';

const SECTIONS: Readonly<Record<string, string>> = {
  decision: 'take it out and let the proxy forward',
};

/** Takes out of `data` (changing it) what this version does not have, so that the schema does not call it unknown. */
export function takeNotYet(data: Record<string, unknown>): Issue[] {
  const issues: Issue[] = [];
  for (const [section, advice] of Object.entries(SECTIONS)) {
    if (!Object.hasOwn(data, section)) continue;
    issues.push({ path: [section], message: `is not in this version; ${advice}`, at: 'key' });
    delete data[section];
  }
  return issues;
}
