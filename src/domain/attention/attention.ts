// What needs somebody, as the desk, webhooks and readiness tell of it: a code, what it is about, and a sentence that says what to
// do. Several processes may find the same; it stands from the first that finds it to the last.

/** Codes, worst first, and how soon somebody should look if a finding says nothing else. */
const SEVERITIES = {
  settlement_unknown: 'page',
  facilitator_failing: 'page',
  facilitator_unauthorized: 'page',
  receiver_unpayable: 'page',
  ledger_unavailable: 'page',
  store_low: 'ticket',
  sync_stale: 'ticket',
  routes_held_back: 'ticket',
  sidecar_silent: 'ticket',
  webhook_failing: 'ticket',
  webhook_disabled: 'ticket',
  config_refused: 'ticket',
  config_differs: 'ticket',
  clock_off: 'ticket',
} as const;
export type AttentionCode = keyof typeof SEVERITIES;
export type AttentionSeverity = 'page' | 'ticket';

export const ATTENTION_CODES: readonly AttentionCode[] = Object.keys(SEVERITIES).filter(isAttentionCode);

/** Finding of one process. */
export type AttentionFinding = {
  readonly code: AttentionCode;
  readonly severity: AttentionSeverity;
  /** Name of what it is about; empty if there is but one. */
  readonly subject: string;
  /** A sentence that says what is and what to do. */
  readonly detail: string;
  /** How many there are of it. */
  readonly count: number;
  /** A path of the desk; empty if there is none. */
  readonly link: string;
};

/** `since`: milliseconds since the epoch. */
export type AttentionEntry = AttentionFinding & { readonly since: number };

/** What one process found, as a store keeps it. */
export type AttentionRow = AttentionEntry & { readonly source: string; readonly seenAt: number };

export function isAttentionCode(name: string): name is AttentionCode {
  return Object.hasOwn(SEVERITIES, name);
}

export function finding(
  code: AttentionCode,
  detail: string,
  rest: Partial<Omit<AttentionFinding, 'code' | 'detail'>> = {},
): AttentionFinding {
  return { code, severity: SEVERITIES[code], subject: '', detail, count: 1, link: '', ...rest };
}

/** A process that has not said for so long that it still finds something is gone. */
const GONE_MS = 60_000;
/** A finding that stands is said again so often. */
const AGAIN_MS = 15_000;

export type AttentionPlan = {
  /** Rows to write, in place of those of the same source, code and subject. */
  readonly write: readonly AttentionRow[];
  readonly remove: readonly AttentionRow[];
  /** All that stands afterwards, worst first. */
  readonly entries: readonly AttentionEntry[];
  readonly raised: readonly AttentionEntry[];
  readonly cleared: readonly AttentionEntry[];
};

/** Plans what a store has to change if `source` finds `findings` at `now`, among the `rows` of all processes. */
export function planAttention(
  rows: readonly AttentionRow[],
  source: string,
  findings: readonly AttentionFinding[],
  now: number,
): AttentionPlan {
  const own = new Map(rows.filter((row) => row.source === source).map((row) => [nameOf(row), row]));
  const found = new Map(
    findings.map((each): [string, AttentionRow] => {
      const known = own.get(nameOf(each));
      return [nameOf(each), { ...each, source, since: known?.since ?? now, seenAt: now }];
    }),
  );
  const write = [...found].flatMap(([name, row]) => {
    const known = own.get(name);
    const isSaid = known !== undefined && known.seenAt > now - AGAIN_MS && isSame(known, row);
    return isSaid ? [] : [row];
  });
  const remove = rows.filter((row) =>
    row.source === source ? !found.has(nameOf(row)) : row.seenAt < now - GONE_MS || row.seenAt > now + GONE_MS,
  );
  const removed = new Set(remove);
  const others = rows.filter((row) => row.source !== source && !removed.has(row));
  const before = merged(rows);
  const after = merged([...others, ...found.values()]);
  return {
    write,
    remove,
    entries: [...after.values()].toSorted(worstFirst),
    raised: [...after].flatMap(([name, entry]) => (before.has(name) ? [] : [entry])),
    cleared: [...before].flatMap(([name, entry]) => (after.has(name) ? [] : [entry])),
  };
}

function nameOf({ code, subject }: Pick<AttentionFinding, 'code' | 'subject'>): string {
  return `${code} ${subject}`;
}

function isSame(a: AttentionRow, b: AttentionRow): boolean {
  return a.severity === b.severity && a.detail === b.detail && a.count === b.count && a.link === b.link;
}

/** One entry for what several processes found: since the first of them, and as bad as the worst says. */
function merged(rows: readonly AttentionRow[]): Map<string, AttentionEntry> {
  const entries = new Map<string, AttentionEntry>();
  for (const { source: _source, seenAt: _seenAt, ...entry } of rows) {
    const known = entries.get(nameOf(entry));
    const worse = known === undefined || (known.severity === 'ticket' && entry.severity === 'page') ? entry : known;
    const since = Math.min(entry.since, known?.since ?? entry.since);
    entries.set(nameOf(entry), { ...worse, since, count: Math.max(entry.count, known?.count ?? 0) });
  }
  return entries;
}

function worstFirst(a: AttentionEntry, b: AttentionEntry): number {
  if (a.severity !== b.severity) return a.severity === 'page' ? -1 : 1;
  const place = ATTENTION_CODES.indexOf(a.code) - ATTENTION_CODES.indexOf(b.code);
  return place === 0 ? a.since - b.since : place;
}
