// What must hold of webhooks after a run: for each charge of the ledger the endpoint saw all states in their order, at least once,
// and nothing that did not happen.
import { setTimeout } from 'node:timers/promises';
import { MAX_LINES } from '../../../src/domain/payment/claim-policy.ts';
import { eventsByCharge, eventsOfHistory } from '../../support/told-charges.ts';
import type { Taken } from '../../support/webhook-receiver.ts';
import type { Verdict } from './oracle.ts';
import { ENDPOINT, type Told } from './told.ts';
import type { ListedCharge, World } from './world.ts';

/** Without any event taken: longer than the pause after which the oldest one is tried in any case, and a lease. */
const STALLED_MS = 90_000;
const LOOK_MS = 200;
/** Questions about charges at the same time. */
const READING = 8;

/** Waits until nothing waits for the endpoint any more; false if nothing moves. */
export async function untilTold({ ask }: World, told: Told): Promise<boolean> {
  // The word of an operator who has mended the endpoint: all that waits is due.
  await ask('POST', `/v1/webhooks/${ENDPOINT}/enable`);
  let [most, movedAt] = [told.taken.length, performance.now()];
  for (;;) {
    const { data } = (await ask('GET', '/v1/webhooks')) as { data: readonly { waiting: number }[] };
    if (data.every(({ waiting }) => waiting === 0)) return true;
    if (told.taken.length > most) [most, movedAt] = [told.taken.length, performance.now()];
    if (performance.now() - movedAt > STALLED_MS) return false;
    await setTimeout(LOOK_MS);
  }
}

export async function judgeTold(world: World, { taken, wrong }: Told): Promise<Verdict> {
  const violations = [...wrong];
  const events = eventsByCharge(taken);
  const charges = await world.charges();
  const known = new Set(charges.map(({ id }) => id));
  for (const [id, those] of events)
    if (!known.has(id)) violations.push(`webhooks told of a charge that is none: ${JSON.stringify(those)}`);
  const first = new Map<string, string>();
  for (const { id, ...event } of taken) {
    // The registry's id may not be known yet when a sidecar sends first.
    const content = JSON.stringify({ ...event, data: { ...event.data, registry_id: null } });
    if ((first.get(id) ?? content) !== content)
      violations.push(`the event ${id} came with another content: ${content}`);
    first.set(id, content);
  }
  const next = charges.values();
  const readers = Array.from({ length: READING }, async () => {
    for (const charge of next) {
      const history = (await world.ask('GET', `/v1/billing/charges/${charge.id}/history`)) as {
        readonly data: readonly { readonly state: string }[];
      };
      const those = events.get(charge.id) ?? [];
      for (const what of faultsOf(charge, history.data, those))
        violations.push(
          `webhooks: charge ${charge.id} ${what}; told: ${those.map(({ type }) => type).join(' ')}; history: ${JSON.stringify(history.data)}`,
        );
    }
  });
  await Promise.all(readers);
  const ofCharges = taken.filter(({ type }) => type.startsWith('charge.'));
  const all = [...events.values()].flat();
  const countOf = (wanted: string): number => all.filter(({ type }) => type === wanted).length;
  const types = [...new Set(all.map(({ type }) => type))].toSorted();
  return {
    violations,
    counts: {
      'webhooks: charges told of': events.size,
      'webhooks: events of charges': all.length,
      ...Object.fromEntries(types.map((type) => [`webhooks: ${type}`, countOf(type)])),
      'webhooks: events of charges that came again': ofCharges.length - all.length,
      'webhooks: other events': taken.length - ofCharges.length,
    },
  };
}

/** What is wrong with the events of a charge beside its history. */
function faultsOf(
  charge: ListedCharge,
  history: readonly { readonly state: string }[],
  events: readonly Taken[],
): readonly string[] {
  const types = events.map(({ type }) => type);
  const moves = types.filter((type) => type !== 'charge.unknown').join(' ');
  const wanted = eventsOfHistory(history);
  const faults: string[] = [];
  // A long history keeps its first line and its last ones.
  const isCut = history.length >= MAX_LINES;
  if (isCut ? !moves.endsWith(wanted.slice(2).join(' ')) : moves !== wanted.join(' '))
    faults.push('was not told of as it went');
  if (events.some(({ data }, index) => data['sequence'] !== index + 1)) faults.push('was told of out of order');
  if (/(?:^|(?:settled|delivered|released|failed) )charge\.unknown|unknown charge\.unknown/.test(types.join(' ')))
    faults.push('was told to be unknown when it was not');
  const last = events.at(-1);
  const isOver = last?.type !== 'charge.unknown';
  if (isOver && last?.data['status'] !== charge.status) faults.push(`was told last to be ${last?.data['status']}`);
  if (isOver && last?.data['transaction'] !== charge['transaction']) faults.push('was told of another transaction');
  return faults;
}
