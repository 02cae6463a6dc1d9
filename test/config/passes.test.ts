// The sentences of what a plan sells beforehand: every wrong pass is told with what would be right, at its limits and one past
// them, and what is right is taken as it is written.
import { describe, expect, test } from 'vitest';
import { configWarnings } from '../../src/config/warnings.ts';
import { readConfig } from '../../src/config/load.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';

function read(plan: string, more = ''): ReturnType<typeof readConfig> {
  const text = `proxy: { upstream: "http://127.0.0.1:3000" }\nregistry: {}\nselling: { plans: [{ id: a, ${plan} }] }\n${more}`;
  return readConfig(text, { file: 't.yaml', path: '/nowhere/t.yaml', env: {}, networks: NETWORKS, now: 0 });
}
function problemsOf(plan: string, more?: string): readonly string[] {
  const found = read(plan, more);
  return found.ok ? [] : found.problems.map(({ path, message }) => `${path}: ${message}`);
}
/** Problems of a plan with these passes, without the place of the plan. */
const wrong = (passes: string, more?: string): readonly string[] =>
  problemsOf(`passes: [${passes}]`, more).map((each) => each.replace('selling.plans[0].', ''));

const ONE_OF = 'write exactly one of seconds, uses and credit';

describe('refuses: a wrong pass', () => {
  test.each([
    ['{ amount: "1", uses: 1 }', 'passes[0].id: is missing; write a name of this pass: up to 64 letters, digits'],
    ['{ id: "a b", amount: "1", uses: 1 }', 'passes[0].id: is not a name of this pass: up to 64 letters, digits'],
    [`{ id: ${'x'.repeat(65)}, amount: "1", uses: 1 }`, 'passes[0].id: is not a name of this pass: up to 64 letters'],
    ['{ id: p, uses: 1 }', 'passes[0].amount: is missing; write the price of the pass: '],
    ['{ id: p, amount: 1, uses: 1 }', 'passes[0].amount: quote the amount: '],
    ['{ id: p, amount: "0", uses: 1 }', 'passes[0].amount: is not usable; '],
    ['{ id: p, amount: "-1", uses: 1 }', 'passes[0].amount: has a sign; write the amount without one'],
    ['{ id: p, amount: "1,50", uses: 1 }', 'passes[0].amount: has a comma; '],
    ['{ id: p, amount: "1 USD", uses: 1 }', 'passes[0].amount: holds more than the number; '],
    ['{ id: p, amount: "1" }', `passes[0]: says nothing of what it gives; ${ONE_OF}`],
    ['{ id: p, amount: "1", uses: 1, seconds: 60 }', `passes[0].uses: stands beside seconds; ${ONE_OF}`],
    ['{ id: p, amount: "1", uses: 1, credit: "1" }', `passes[0].credit: stands beside uses; ${ONE_OF}`],
    ['{ id: p, amount: "1", seconds: 0 }', 'passes[0].seconds: is not a whole number from 1 to 69120000'],
    ['{ id: p, amount: "1", seconds: 69120001 }', 'passes[0].seconds: is not a whole number from 1 to 69120000'],
    ['{ id: p, amount: "1", seconds: 1d }', 'passes[0].seconds: is text; write a whole number from 1 to 69120000'],
    ['{ id: p, amount: "1", uses: 0 }', 'passes[0].uses: is not a whole number from 1 to 1000000000'],
    ['{ id: p, amount: "1", uses: 1.5 }', 'passes[0].uses: is not a whole number from 1 to 1000000000'],
    ['{ id: p, amount: "1", uses: 1000000001 }', 'passes[0].uses: is not a whole number from 1 to 1000000000'],
    ['{ id: p, amount: "1", credit: 5 }', 'passes[0].credit: quote the amount: '],
    ['{ id: p, amount: "1", credit: "0" }', 'passes[0].credit: is not usable; '],
    ['{ id: p, amount: "1", uses: 1, valid: 59s }', 'passes[0].valid: is out of range; write 1m to 800d'],
    ['{ id: p, amount: "1", uses: 1, valid: 801d }', 'passes[0].valid: is out of range; write 1m to 800d'],
    ['{ id: p, amount: "1", uses: 1, valid: long }', 'passes[0].valid: is not '],
    [
      '{ id: p, amount: "1", seconds: 60, valid: 1d }',
      'passes[0].valid: stands beside seconds, which say how long the pass lives; take it out',
    ],
    ['{ id: p, amount: "1", uses: 1, scope: all }', 'passes[0].scope: is not known; write plan or route'],
    ['{ id: p, amount: "1", uses: 1, price: "1" }', 'passes[0].price: is not known here'],
    [
      '{ id: p, amount: "1", uses: 1 }, { id: p, amount: "2", uses: 2 }',
      'passes[1].id: is that of another pass of the plan; write one of its own',
    ],
    [
      '{ id: p, amount: "1", uses: 1 }, { id: q, amount: "1.00", seconds: 2 }',
      'passes[1].amount: is that of another pass of the plan: what was paid would not say what was bought; write another',
    ],
    [
      [1, 2, 3, 4, 5].map((n) => `{ id: p${n}, amount: "${n}", uses: ${n} }`).join(', '),
      'passes: holds more than 4 passes; take some out',
    ],
    [
      '{ id: p, amount: "0.0000001", uses: 1 }',
      'passes[0].amount: cannot be paid: no asset of a receiver has more than 6 decimals',
    ],
  ])('refuses: passes [%s]', (passes, sentence) => {
    expect(wrong(passes)).toEqual([expect.stringContaining(sentence)]);
  });

  test('refuses: a pass that costs what a single request of the file costs, on the default plan too', () => {
    const routes = (planId: string): string =>
      `routes: [{ route_pattern: /a, amount: "1.0"${planId} }, { route_pattern: /b, amount: "7", plan_id: a }]`;
    const sentence = 'passes[0].amount: is the price of a single request of a route of this plan; write another';
    expect(wrong('{ id: p, amount: "1", uses: 1 }', routes(', plan_id: a'))).toEqual([sentence]);
    expect(wrong('{ id: p, amount: "1", uses: 1 }', routes(''))).toEqual([]);
    const standard = problemsOf('passes: [] }, { id: default, passes: [{ id: p, amount: "1", uses: 1 }]', routes(''));
    expect(standard).toEqual([`selling.plans[1].${sentence}`]);
    // Without single requests nothing could be mistaken for the pass.
    expect(problemsOf('single: false, passes: [{ id: p, amount: "1", uses: 1 }]', routes(', plan_id: a'))).toEqual([]);
  });

  test.each([
    ['single: false', 'single: is false, but the plan has no passes: nothing would be for sale'],
    ['single: no', 'single: is text; write true or false'],
    ['wallet: 1', 'wallet: is a number; write true or false'],
    [
      'cookie: true',
      'cookie: is true, but no pass of the plan is by seconds, and only those come as a cookie; take it out',
    ],
    [
      'cookie: true, passes: [{ id: p, amount: "1", uses: 1 }]',
      'cookie: is true, but no pass of the plan is by seconds, and only those come as a cookie; take it out',
    ],
    ['passes: { id: p }', 'passes: is a section'],
  ])('refuses: a plan with %s', (plan, sentence) => {
    expect(problemsOf(plan)).toEqual([expect.stringContaining(`selling.plans[0].${sentence}`)]);
  });
});

test('behaviour: passes at their limits are taken as they are written', () => {
  const found = read(
    [
      `passes: [{ id: ${'x'.repeat(64)}, amount: "0.000001", seconds: 1 }, { id: b, amount: "2", seconds: 69120000 }`,
      '{ id: c, amount: "3", uses: 1000000000, valid: 800d, scope: route }, { id: d, amount: "4", credit: "5.00", valid: 1m }]',
      'single: false, wallet: false, cookie: true',
    ].join(', '),
  );
  if (!found.ok) throw new Error(JSON.stringify(found.problems));
  const plan = found.config.selling.plans.byId.get('a');
  expect(plan).toMatchObject({ single: false, wallet: false, cookie: true });
  expect(plan?.passes).toEqual([
    { id: 'x'.repeat(64), amount: '0.000001', kind: 'seconds', seconds: 1, validMs: 1000, scope: 'plan' },
    { id: 'b', amount: '2', kind: 'seconds', seconds: 69_120_000, validMs: 69_120_000_000, scope: 'plan' },
    { id: 'c', amount: '3', kind: 'uses', uses: 1_000_000_000, validMs: 69_120_000_000, scope: 'route' },
    { id: 'd', amount: '4', kind: 'credit', credit: '5.00', validMs: 60_000, scope: 'plan' },
  ]);
  const usual = read('passes: [{ id: p, amount: "1", uses: 5 }]');
  if (!usual.ok) throw new Error(JSON.stringify(usual.problems));
  const standard = usual.config.selling.plans.byId.get('a');
  expect(standard).toMatchObject({ single: true, wallet: true, cookie: false });
  expect(standard?.passes).toMatchObject([{ validMs: 365 * 86_400_000, scope: 'plan' }]);
});

test('behaviour: a start warns of a pass above 1 of its currency, which public clients refuse, and not of one at 1', () => {
  const found = read('passes: [{ id: cheap, amount: "1.00", uses: 5 }, { id: dear, amount: "1.01", uses: 9 }]');
  if (!found.ok) throw new Error(JSON.stringify(found.problems));
  const told = configWarnings(found.config, NETWORKS).filter((each) => each.includes('the pass '));
  expect(told).toEqual([
    'the pass dear of the plan a costs 1.01: public clients refuse more than 1 unless they are told to pay it',
  ]);
});
