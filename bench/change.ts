// The scenario `change`: an operator changes prices through the registry's API, one after the other, while requests come
// at a fixed rate, half of them free and half of them 402s. No request may fail; what counts is the longest pause, and how
// long it takes until the proxy asks for the new price. Beside it the same load while nothing changes.
import { setTimeout } from 'node:timers/promises';
import { ask, checkDemand, expect } from './check.ts';
import { RATE } from './latency.ts';
import { MIXED_COLUMNS, runMixed } from './mixed.ts';
import { median, type Section } from './report.ts';
import { makeRoute, paidPath } from './routes.ts';
import { measureSection, startTollgates, withPool, type Contender, type Entrant, type Stage } from './stage.ts';
import { dashboardToken, type Tollgate } from './tollgate.ts';

type Effect = { readonly answeredMs: number; readonly effectMs: number };

const BETWEEN_CHANGES_MS = 100;
const POLL_MS = 2;
/** How long a change may take to have effect before it counts as lost. */
const LOST_MS = 30_000;

export function measureChanges(stage: Stage): Promise<Section> {
  return withPool(async (pool) => {
    const entrants = await startTollgates(stage, pool);
    const contenders: Contender[] = [];
    for (const entrant of entrants) {
      const token = await dashboardToken(entrant.tollgate);
      contenders.push(atRest(stage, entrant), changing(stage, entrant, token));
    }
    return measureSection(stage, contenders, {
      name: 'change',
      title: `Prices changed under ${RATE} requests/s`,
      columns: [
        ...MIXED_COLUMNS,
        { key: 'changes', title: 'changes', digits: 0 },
        { key: 'answeredMs', title: 'PATCH answered ms', digits: 1 },
        { key: 'effectMs', title: 'in effect ms', digits: 1 },
      ],
      references: { key: 'cpuUs', rows: [] },
      remarks: [
        'The longest pause counts from when a request was due; the rows at rest say how much of it is the load generator and its core.',
      ],
    });
  });
}

function atRest(stage: Stage, { name, routes, tollgate }: Entrant): Contender {
  return {
    name: labelled(name, 'at rest'),
    check: () => checkPrice(stage, tollgate),
    measure: async () => {
      const { faults, ...rest } = await runMixed(stage, tollgate, routes);
      return { round: rest, faults };
    },
  };
}

function changing(stage: Stage, { name, routes, tollgate }: Entrant, token: string): Contender {
  let cents = 1;
  return {
    name: labelled(name, 'prices changing'),
    check: () => checkPrice(stage, tollgate),
    measure: async () => {
      const over = new AbortController();
      const effects: Effect[] = [];
      const changes = (async () => {
        while (!over.signal.aborted) {
          cents = (cents % 98) + 1;
          effects.push(await changePrice(tollgate, token, `0.${String(cents).padStart(2, '0')}`));
          await setTimeout(BETWEEN_CHANGES_MS);
        }
      })();
      // A failed change is told when the load is over.
      changes.catch(() => undefined);
      const { faults, ...rest } = await runMixed(stage, tollgate, routes).finally(() => over.abort());
      await changes;
      const round = {
        ...rest,
        changes: effects.length,
        answeredMs: median(effects.map(({ answeredMs }) => answeredMs)),
        effectMs: median(effects.map(({ effectMs }) => effectMs)),
      };
      return { round, faults };
    },
  };
}

/** Changes the price of the first route and waits until the proxy asks for it. */
async function changePrice(tollgate: Tollgate, token: string, amount: string): Promise<Effect> {
  const startedAt = performance.now();
  const url = `http://127.0.0.1:${tollgate.port('registry')}/v1/billing/protected-routes/${makeRoute(0).id}`;
  const answer = await fetch(url, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ amount }),
  });
  const text = await answer.text();
  expect(answer.status === 200, `answers ${answer.status} to a changed price: ${text}`);
  const answeredMs = performance.now() - startedAt;
  while (performance.now() - startedAt < LOST_MS) {
    const { body } = await ask(tollgate.port('proxy'), { method: 'GET', path: paidPath(0, 0) });
    const demand: unknown = JSON.parse(body.toString());
    if (typeof demand === 'object' && demand !== null && 'amount' in demand && demand.amount === amount)
      return { answeredMs, effectMs: performance.now() - startedAt };
    await setTimeout(POLL_MS);
  }
  throw new Error(`a price was changed ${LOST_MS / 1000} s ago and the proxy asks for another one`);
}

async function checkPrice(stage: Stage, tollgate: Tollgate): Promise<void> {
  await checkDemand(tollgate.port('proxy'), stage.witness, paidPath(0, 0));
}

/** The suffix of an older checkout stays at the end. */
function labelled(name: string, what: string): string {
  return name.replace(/ routes/, ` routes, ${what}`);
}
