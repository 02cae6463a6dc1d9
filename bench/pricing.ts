// The scenario `price`: unpaid requests of a route whose plan prices them by rules and units, beside those of a route without a plan,
// both of the same process and with the same query. A price service is left out: that is waiting for somebody else.
import { checkDemand, checkInterfaceBody } from './check.ts';
import { COLUMNS, LOADED_BY, shoot, WORKING_SET } from './load.ts';
import { pricedName, unpricedName } from './names.ts';
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

const DEMAND_START = '{"error":"Payment Required","charge_id":"chg_';
/** Prices that are asked for in turn. */
const PRICES = 100;

/** What the configuration says of the two routes. */
export const PRICED_CONFIGURATION = `selling:
  plans:
    - id: priced
      price:
        rules:
          - { when: { query.size: [small, "tiny*"] }, amount: "0.01" }
          - { when: { query.size: [large], header.accept: ["text/none*"] }, times: "5" }
          - { when: { query.size: [large] }, times: "2" }
        units: { of: query.n, amount: "0.001", max: 1000, missing: 1 }
routes:
  - { method: GET, route_pattern: "/bench-unpriced/:id", amount: "0.05" }
  - { method: GET, route_pattern: "/bench-priced/:id", amount: "0.05", plan_id: priced }
`;

export function measurePrices(stage: Stage): Promise<Section> {
  return withPool(async (pool) => {
    const { witness } = stage;
    const main = mainCount(stage.plan);
    const contenders: Contender[] = [];
    for (const { suffix, server } of await startProcesses(stage, pool, {
      label: pricedName(main),
      routes: main,
      more: PRICED_CONFIGURATION,
    })) {
      const port = server.port('proxy');
      const contender = (name: string, path: string, amount: string): Contender => {
        const paths = Array.from({ length: WORKING_SET }, (_, n) => `${path}/item-${n}?size=large&n=${n % PRICES}`);
        return {
          name: name + suffix,
          check: async () => checkInterfaceBody(await checkDemand(port, witness, paths[7] ?? '/'), amount),
          measure: (seconds) =>
            shoot(stage, server, port, seconds, {
              ...{ method: 'GET', paths, status: 402, start: DEMAND_START, bytes: 100, reaches: 'none' },
            }),
        };
      };
      contenders.push(
        contender(unpricedName(main), '/bench-unpriced', '0.05'),
        contender(pricedName(main), '/bench-priced', '0.107'),
      );
    }
    return measureSection(
      stage,
      together(contenders),
      {
        name: 'price',
        title: 'Unpaid request, 402 of a price by rules and units',
        columns: COLUMNS,
        references: { key: 'cpuUs', rows: [unpricedName(main)] },
        remarks: [
          LOADED_BY,
          `A round is the mean of ${PROCESSES} processes, each with both rows; three rules and units, ${PRICES} prices in turn.`,
        ],
      },
      [],
    );
  });
}
