// The scenarios `matcher` and `quote`: canonicalising and finding a route with 10 to 100,000 of them, compiling them, and
// what the 402 costs by itself. No server: bench/matcher.ts in a process of its own for each number and each round.
import path from 'node:path';
import type { ListNumbers, MatcherNumbers, QuoteNumbers } from './matcher.ts';
import { NODE, runToEnd, SERVER_CORE } from './process.ts';
import { profilingFlags } from './profile.ts';
import type { Round, Section } from './report.ts';
import { measureSection, slowly, type Contender, type Stage } from './stage.ts';

/** A look-up in a longer list takes so long that nobody needs to know how long. */
const MOST_LISTED = 10_000;

export async function measureMatcher(stage: Stage): Promise<Section> {
  const contenders: Contender[] = [];
  for (const count of stage.plan.matcherCounts) {
    for (const { suffix, root } of stage.checkouts) {
      contenders.push(
        numbers(`${count} routes${suffix}`, async () => {
          const { changeUs, ...found }: MatcherNumbers = JSON.parse(await run(stage, root, 'matcher', count));
          return changeUs === undefined ? found : { ...found, changeUs };
        }),
      );
    }
  }
  if (stage.checkouts.length === 1) {
    for (const count of stage.plan.matcherCounts.filter((routes) => routes <= MOST_LISTED)) {
      contenders.push(
        numbers(listName(count), async () => {
          const found: ListNumbers = JSON.parse(await run(stage, '', 'list', count));
          return found;
        }),
      );
    }
  }
  return measureSection(slowly(stage), contenders, {
    name: 'matcher',
    title: 'Finding a route: canonicalise and match',
    columns: [
      { key: 'freshNs', title: 'never seen ns', digits: 0 },
      { key: 'hotNs', title: 'hot ns', digits: 0 },
      { key: 'capitalsNs', title: 'never seen, capitals ns', digits: 0 },
      { key: 'escapedNs', title: 'never seen, escaped ns', digits: 0 },
      { key: 'dearerNs', title: 'never seen, capitals, dearer routes around ns', digits: 0 },
      { key: 'compileMs', title: 'compile CPU ms', digits: 1 },
      { key: 'changeUs', title: 'one price changed us', digits: 1 },
      { key: 'heapMb', title: 'heap MB', digits: 2 },
    ],
    references: { key: 'freshNs', rows: [] },
    remarks: [
      `Hot: 400 paths in turn, half of them free, each a string of its own as a parser makes it. The list is what is written first: one path-to-regexp function a route, asked in turn, nothing folded and nothing refused.`,
    ],
  });
}

export async function measureQuotes(stage: Stage): Promise<Section> {
  const contenders = stage.checkouts.map(({ suffix, root }) =>
    numbers(`402${suffix}`, async () => {
      const found: QuoteNumbers = JSON.parse(await run(stage, root, 'quote', 0));
      return found;
    }),
  );
  return measureSection(slowly(stage), contenders, {
    name: 'quote',
    title: 'Making a 402',
    columns: [
      { key: 'issueNs', title: 'charge id, same route and second ns', digits: 0 },
      { key: 'signNs', title: 'charge id, signed anew ns', digits: 0 },
      { key: 'renderNs', title: 'body and header ns', digits: 0 },
    ],
    references: { key: 'renderNs', rows: [] },
    remarks: [],
  });
}

function listName(count: number): string {
  return `list of path-to-regexp, ${count} routes`;
}

function numbers(name: string, measure: () => Promise<Round>): Contender {
  return { name, check: () => Promise.resolve(), measure: async () => ({ round: await measure(), faults: [] }) };
}

function run({ profiles }: Stage, root: string, what: string, count: number): Promise<string> {
  const args = [
    ...profilingFlags(profiles, `${what}-${count}`),
    '--expose-gc',
    path.join(import.meta.dirname, 'matcher.ts'),
    root,
    what,
    String(count),
  ];
  return runToEnd({ name: `${what} ${count}`, file: NODE, args, core: SERVER_CORE });
}
