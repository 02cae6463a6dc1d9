// Keys of a later version: known by name, and refused, so that no operator believes that they are in force.
import type { Issue, Path } from './problems.ts';

const SECTIONS: Readonly<Record<string, string>> = {
  decision: 'take it out and let the proxy forward',
};

/** Takes out of `data` (changing it) what this version does not have, so that the schema does not call it unknown. */
export function takeNotYet(data: Record<string, unknown>): Issue[] {
  const issues: Issue[] = [];
  for (const [section, advice] of Object.entries(SECTIONS)) {
    if (!Object.hasOwn(data, section)) continue;
    issues.push(notYet([section], `is not in this version; ${advice}`, 'key'));
    delete data[section];
  }
  if (isSeveral(data['workers'])) {
    issues.push(notYet(['workers'], 'above 1 is not in this version; write 1, or run several processes'));
  }
  return issues;
}

function notYet(path: Path, message: string, at?: 'key'): Issue {
  return at === undefined ? { path, message } : { path, message, at };
}

function isSeveral(workers: unknown): boolean {
  if (typeof workers === 'number') return workers > 1;
  return typeof workers === 'string' && /^(auto|[2-9]|[1-9]\d+)$/.test(workers);
}
