// The short tier: over every upstream that comes with the development dependencies, with no payment ever sent, no
// protected handler runs; and the suite would have noticed. The long tier is `npm run test:bypass`.
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { casesOf } from './corpus.ts';
import { describeDraft, draftOf } from './draft.ts';
import { startGateway, type Gateway } from './gateway.ts';
import type { MutantResult } from './mutants.ts';
import { MUTATIONS } from './mutations.ts';
import { REGRESSIONS } from './regressions.ts';
import { settingsName } from './report.ts';
import { shrink } from './shrink.ts';
import { faults, runUpstream, settingsFor } from './suite.ts';
import { NPM } from './upstreams/npm.ts';

const SEED = 20_26;
const CASES = 40;

describe('no way around', () => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  const drafts = [...REGRESSIONS, ...casesOf(SEED, CASES)];

  test.each(NPM.map((spec) => [spec.name, spec] as const))(
    'attack: nothing that is sent unpaid runs a protected handler of %s',
    async (_, spec) => {
      // Kept slashes and forwarded methods are the long tier's.
      const tried = settingsFor(spec).filter(
        ({ undeclaredMethods, encodedSlashes }) => undeclaredMethods === 'pay' && encodedSlashes === 'refuse',
      );
      const rows = await runUpstream(spec, gateway, drafts, { silenceMs: 200, tried });
      const found = rows.flatMap(({ passage }) =>
        passage.found.map((draft) => `${settingsName(passage.settings)}: ${describeDraft(draft)}`),
      );
      expect(found).toEqual([]);
      expect(faults({ rows, broken: [] })).toEqual([]);
    },
    180_000,
  );
});

describe('teeth', () => {
  let results: readonly MutantResult[];
  beforeAll(async () => {
    const file = path.join(import.meta.dirname, 'mutants.ts');
    const { stdout } = await promisify(execFile)(path.resolve('node_modules/.bin/node'), [file], { maxBuffer: 1e7 });
    results = stdout
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as MutantResult);
  }, 400_000);

  test.each(MUTATIONS.map((mutation) => [mutation.rule, mutation] as const))(
    'attack: the rule "%s", switched off, is missed',
    (rule) => {
      const result = results.find((candidate) => candidate.rule === rule);
      expect(result?.places, 'the line of the rule stands once in its file').toBe(1);
      for (const { intact, mutated, ...where } of result?.reached ?? []) {
        expect({ ...where, intact, caught: mutated > 0 }).toEqual({ ...where, intact: 0, caught: true });
      }
    },
  );
});

describe('the cases', () => {
  test('behaviour: a seed makes the same bypass cases every time, another seed makes others', () => {
    expect(casesOf(7, 50)).toEqual(casesOf(7, 50));
    expect(casesOf(7, 50)).not.toEqual(casesOf(8, 50));
  });

  test('behaviour: a case that fails is made as small as it can be', async () => {
    const large = draftOf('POST', '/free/../v1/%2ereports/x?y', { body: 'body', before: '\r\n' });
    const small = await shrink(large, async ({ target }) => target.includes('%2e'));
    expect(small).toEqual(draftOf('GET', '%2e'));
  });
});
