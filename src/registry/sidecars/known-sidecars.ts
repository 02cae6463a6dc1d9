// The sidecars of a registry by what is known of them: what each said of itself with its counts, whichever replica heard it, and
// who holds a stream here. Pure, so that every figure about sidecars is of the same ones.
import { SILENT_MS } from '../../domain/attention/judgements.ts';
import { STEP_MS } from '../../domain/totals/steps.ts';
import type { TotalsSource } from '../../domain/totals/totals-store.ts';
import { readSidecarReport, type SidecarReport } from '../../domain/totals/totals-wire.ts';
import type { SidecarContact } from '../stream/sidecars.ts';

export type KnownSidecar = {
  /** Names this life of the sidecar. */
  readonly id: string;
  /** Undefined: it hands no counts over, and says nothing of itself. */
  readonly report: SidecarReport | undefined;
  readonly contact: SidecarContact | undefined;
  readonly lastSeenMs: number;
  /** Nothing was heard of it for a minute. */
  readonly isSilent: boolean;
  /** Its counts of the last minute are here. */
  readonly isCounted: boolean;
};

export type SidecarFacts = {
  readonly sources: readonly TotalsSource[];
  readonly contacts: ReadonlyMap<string, SidecarContact>;
  readonly nowMs: number;
};

/** Time for which a silent one is remembered, unless another life of it begins. */
const REMEMBERED_MS = STEP_MS.day;

export function knownSidecars({ sources, contacts, nowMs }: SidecarFacts): readonly KnownSidecar[] {
  const known = new Map<string, KnownSidecar>();
  const ended = new Set<string>();
  for (const { source, lastAt, status } of sources) {
    if (lastAt <= nowMs - REMEMBERED_MS) continue;
    const report = readSidecarReport(status);
    // A replica says nothing of itself; a sidecar that stops says so.
    if (report === undefined) continue;
    if (report.ending) {
      ended.add(source);
      continue;
    }
    const contact = contacts.get(source);
    const lastSeenMs = Math.max(lastAt, contact === undefined ? 0 : nowMs - contact.agoMs);
    known.set(source, {
      ...{ id: source, report, contact, lastSeenMs },
      isSilent: lastSeenMs < nowMs - SILENT_MS,
      isCounted: lastAt >= nowMs - SILENT_MS,
    });
  }
  for (const [id, contact] of contacts) {
    if (known.has(id) || ended.has(id)) continue;
    const lastSeenMs = nowMs - contact.agoMs;
    known.set(id, { id, report: undefined, contact, lastSeenMs, isSilent: false, isCounted: false });
  }
  const all = [...known.values()];
  const starts = startsByName(all);
  return all.filter(({ isSilent, report, lastSeenMs }) => {
    const started = starts.get(report?.name ?? '');
    // Killed and started again, it is the same sidecar to people.
    return !isSilent || started === undefined || started <= lastSeenMs;
  });
}

/** When the youngest sidecar of each name that is heard started, in milliseconds since the epoch. */
function startsByName(sidecars: readonly KnownSidecar[]): ReadonlyMap<string, number> {
  const starts = new Map<string, number>();
  for (const { report, isSilent } of sidecars) {
    if (report === undefined || isSilent) continue;
    starts.set(report.name, Math.max(Date.parse(report.since), starts.get(report.name) ?? 0));
  }
  return starts;
}
