// The scenario `pass`: GETs with a pass by seconds beside free GETs of the same process. A token that was seen before is known by its
// text; one that was not is verified, which `every token verified` has for each request: it goes through more tokens than are kept.
import { ask, checkFree, expect } from './check.ts';
import { COLUMNS, LOADED_BY, shoot, WORKING_SET, type Load } from './load.ts';
import { besidePassesName, passName, verifiedPassName } from './names.ts';
import { PASS_AMOUNT, PASS_PLAN, PASS_SECRET } from './pass-tokens.ts';
import { lineOf } from './question.ts';
import type { Section } from './report.ts';
import {
  mainCount,
  measureSection,
  PROCESSES,
  startProcesses,
  together,
  withPool,
  type Contender,
  type Stage,
} from './stage.ts';
import { UPSTREAM_BODY } from './upstream-answers.ts';

/** Tokens that a process knows by their text are 10,000; the oldest one is the first to be forgotten. */
const MORE_THAN_ARE_KEPT = 12_000;

/** What the configuration says of the route that passes are sold on. */
export const PASS_CONFIGURATION = `charges: { secrets: [${PASS_SECRET}] }
selling: { plans: [{ id: ${PASS_PLAN}, passes: [{ id: day, amount: "${PASS_AMOUNT}", seconds: 86400 }] }] }
routes:
  - { method: GET, route_pattern: "/bench-pass/:id", amount: "0.05", plan_id: ${PASS_PLAN} }
`;

export function measurePasses(stage: Stage): Promise<Section> {
  return withPool(async (pool) => {
    const { witness } = stage;
    const main = mainCount(stage.plan);
    const contenders: Contender[] = [];
    for (const { suffix, server } of await startProcesses(stage, pool, {
      label: passName(main),
      routes: main,
      more: PASS_CONFIGURATION,
    })) {
      const port = server.port('proxy');
      const pathsBelow = (path: string): string[] => Array.from({ length: WORKING_SET }, (_, n) => `${path}/item-${n}`);
      const measure = (path: string, asked: Load['asked']) => (seconds: number) =>
        shoot(stage, server, port, seconds, {
          ...{ method: 'GET', paths: pathsBelow(path), asked, status: 200, reaches: 'every' },
          ...{ start: UPSTREAM_BODY, bytes: UPSTREAM_BODY.length },
        });
      const withPass = (name: string, passes: number): Contender => ({
        name: name + suffix,
        check: () => checkPass(port, '/bench-pass/item-7'),
        measure: measure('/bench-pass', { passes }),
      });
      contenders.push(
        {
          name: besidePassesName(main) + suffix,
          check: () => checkFree(port, witness, 'GET', '/bench-free/item-7'),
          measure: measure('/bench-free', 'request'),
        },
        withPass(passName(main), WORKING_SET),
        withPass(verifiedPassName(main), MORE_THAN_ARE_KEPT),
      );
    }
    return measureSection(
      stage,
      together(contenders),
      {
        name: 'pass',
        title: 'GET with a pass by seconds, 197 bytes',
        columns: COLUMNS,
        references: { key: 'cpuUs', rows: [besidePassesName(main)] },
        remarks: [
          LOADED_BY,
          `A round is the mean of ${PROCESSES} processes, each with all rows; ${WORKING_SET} tokens in turn, or ${MORE_THAN_ARE_KEPT}, of which none is known any more when it comes again.`,
        ],
      },
      [],
    );
  });
}

/** A pass lets its holder in and is handed on with the answer; nobody passes without one or with one that is changed. */
async function checkPass(port: number, path: string): Promise<void> {
  const { headers } = lineOf({ passes: 1 }, path);
  const token = String(headers['Tollgate-Pass']);
  const answer = await ask(port, { method: 'GET', path, headers });
  expect(answer.status === 200, `answers ${answer.status} to a pass`);
  expect(answer.body.toString() === UPSTREAM_BODY, 'changes the body of an answer');
  expect(answer.headers['tollgate-pass'] === token, 'does not hand the pass on');
  expect(/^863\d\ds$|^864\d\ds$/.test(String(answer.headers['tollgate-pass-left'])), 'says another end of the pass');
  for (const wrong of [{}, { 'Tollgate-Pass': `${token.slice(0, -2)}${token.endsWith('AA') ? 'BA' : 'AA'}` }])
    expect(
      (await ask(port, { method: 'GET', path, headers: wrong })).status === 402,
      'lets somebody in without a pass',
    );
}
