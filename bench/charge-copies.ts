// `node bench/charge-copies.ts`: CPU time of each copy of a charge: to a store's values, what an event changed, from a
// store's row, to the ledger's wire and back. Prints the median of nine rounds, in microseconds.
import { decideClaim } from '../src/domain/payment/claim-policy.ts';
import { chargeFromWire, chargeToWire } from '../src/domain/payment/charge-wire.ts';
import { transition, type ChargeEvent } from '../src/domain/payment/transition.ts';
import type { Charge } from '../src/domain/payment/charge.ts';
import { ALL, readStored, toRowChange, toRowInsert } from '../src/registry/store/charge-values.ts';
import { claimOf, proofOf } from '../test/cases/claims.ts';

const NOW = 1_800_000_000_000;
const ROUNDS = 9;
const COPIES = 50_000;
const actor = { owner: 'bench' };
const options = { ...actor, leaseMs: 60_000, maxUnsettledPerPayer: 8 };
const claim = claimOf(1);
const { charge: claimed } = decideClaim(undefined, claim, options, NOW);
const event: ChargeEvent = { kind: 'settled', proof: proofOf(claim), leaseMs: 60_000 };
const settling = moved(claimed, { kind: 'settle_started', via: 'facilitator', leaseMs: 60_000 });
const settled = moved(settling, event);
const { values } = toRowInsert({ charge: settled, claim, options }, NOW);
const row = {
  ...Object.fromEntries(ALL.map((column, index) => [column, values[index]])),
  ...{ version: 1, credential: null, answer_status: null, answer_headers: null, answer_body: null },
};
const wire = chargeToWire(settled);

const copies: Readonly<Record<string, () => unknown>> = {
  'insert into a store': () => toRowInsert({ charge: claimed, claim, options }, NOW),
  'change in a store': () =>
    toRowChange({ before: { charge: settling, version: 1 }, after: settled, actor, because: { event } }, NOW),
  'read from a store': () => readStored(row),
  'write to the wire': () => chargeToWire(settled),
  'read from the wire': () => chargeFromWire(wire),
};
const seen = new Set<unknown>();
for (const [name, copy] of Object.entries(copies)) {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const { user } = process.cpuUsage();
    for (let n = 0; n < COPIES; n++)
      if (n === COPIES - 1) seen.add(copy());
      else copy();
    return (process.cpuUsage().user - user) / COPIES;
  }).toSorted((a, b) => a - b);
  console.log(`${name.padEnd(20)} ${rounds[Math.floor(ROUNDS / 2)]?.toFixed(2)} us`);
}

function moved(charge: Charge, change: ChargeEvent): Charge {
  const result = transition(charge, change, actor, NOW);
  if (!result.ok) throw new Error(result.because);
  return result.charge;
}
