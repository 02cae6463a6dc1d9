// The order in which test files start: those that take longest first, so that no worker is left alone with one of them at
// the end. Without it the largest files come first, and the longest of all is a small one. Files that share processes come
// last, one after the other: a process ends as soon as another file is next, and these are short. A class, because vitest
// wants one.
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files and folders, the slowest first. Most of their time is waiting for real processes and time-outs. */
const SLOW = [
  '/test/lab/simulation/simulation.',
  '/test/lab/bypass/',
  '/test/lab/chaos/',
  '/test/e2e/alerts.',
  '/test/page/pay.',
  '/test/desk/views.',
  '/test/e2e/sums.',
  '/test/e2e/readiness.',
  '/test/e2e/reload.',
  '/test/e2e/postgres.',
  '/test/e2e/changes.',
  '/test/postgres/copy.',
  '/test/e2e/away.',
  '/test/e2e/crash.',
  '/test/lab/',
  '/test/e2e/',
  '/test/page/',
  '/test/desk/',
  '/test/demo/',
  '/test/docs/',
  '/test/postgres/',
  '/test/cli/',
  '/test/attack/',
  '/test/registry/scopes.',
  '/test/registry/ledger-reports.',
  '/test/domain/routing/revise.',
  '/test/gateway/stalled-upload.',
  '/test/config/refusals.',
  '/test/registry/http/openapi-document.',
];

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => sharesProcess(a) - sharesProcess(b) || rankOf(a.moduleId) - rankOf(b.moduleId));
  }
}

function sharesProcess({ project }: TestSpecification): number {
  return project.config.isolate ? 0 : 1;
}

function rankOf(file: string): number {
  const rank = SLOW.findIndex((folder) => file.includes(folder));
  return rank < 0 ? SLOW.length : rank;
}
