// The filters of the charges as they stand in the address, and the question to the registry that they make.
import { withQuery, type QueryValues } from '../../net/query.ts';
import { STATES } from '../../wire/billing.ts';

export type ChargeChoice = {
  readonly q: string | null;
  readonly status: string | null;
  readonly network: string | null;
  readonly route_id: string | null;
  readonly currency: string | null;
  readonly owed: string | null;
  readonly from: string | null;
  readonly to: string | null;
};

const NO_CHOICE: ChargeChoice = {
  ...{ q: null, status: null, network: null, route_id: null },
  ...{ currency: null, owed: null, from: null, to: null },
};

export function readChargeFilter(query: URLSearchParams): ChargeChoice {
  return Object.fromEntries(Object.keys(NO_CHOICE).map((name) => [name, query.get(name)])) as ChargeChoice;
}

export function isFiltered(filter: ChargeChoice): boolean {
  return Object.values(filter).some((value) => value !== null);
}

/** Members of the registry's query: a day that somebody chose ends with its last moment. */
export function questionOf(filter: ChargeChoice): QueryValues {
  return { ...filter, q: filter.q?.trim() ?? null, to: filter.to === null ? null : dayAfter(filter.to) };
}

export function csvPath(filter: ChargeChoice): string {
  return withQuery('/v1/billing/charges.csv', questionOf(filter));
}

const MOST_DAYS = 92;
const DAY_MS = 86_400_000;

/** Why the charges of a range cannot be had as a file; null: they can. */
export function csvFault({ from, to }: ChargeChoice): string | null {
  if (from === null || to === null) return 'Choose the days from and to first.';
  const days = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1;
  if (!(days > 0)) return 'The first day is after the last one.';
  return days > MOST_DAYS ? `At most ${MOST_DAYS} days at a time.` : null;
}

/** The states that are chosen; all if none is named. */
export function chosenStates(status: string | null): readonly string[] {
  const named = status?.split(',') ?? [];
  return STATES.filter((state) => named.includes(state));
}

function dayAfter(day: string): string {
  const at = Date.parse(day);
  return /^\d{4}-\d{2}-\d{2}$/.test(day) && !Number.isNaN(at) ? new Date(at + DAY_MS).toISOString().slice(0, 10) : day;
}
