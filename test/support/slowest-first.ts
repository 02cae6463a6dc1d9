// The order in which test files start: those that take longest first, so that no worker is left alone with one of them at
// the end. Without it the largest files come first, and the longest of all is a small one. A class, because vitest wants one.
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files and folders, the slowest first. Most of their time is waiting for real processes and time-outs. */
const SLOW = [
  '/test/lab/bypass/',
  '/test/lab/chaos/outages.',
  '/test/lab/chaos/',
  '/test/page/pay.',
  '/test/e2e/public-documents.',
  '/test/e2e/reload.',
  '/test/e2e/away.',
  '/test/e2e/changes.',
  '/test/e2e/crash.',
  '/test/e2e/',
  '/test/page/',
  '/test/lab/endurance/',
  '/test/lab/simulation/',
  '/test/cli/',
  '/test/attack/',
];

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => rankOf(a.moduleId) - rankOf(b.moduleId));
  }
}

function rankOf(file: string): number {
  const rank = SLOW.findIndex((folder) => file.includes(folder));
  return rank < 0 ? SLOW.length : rank;
}
