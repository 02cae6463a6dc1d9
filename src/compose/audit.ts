// What a registry's process adds to the audit log by itself: the configuration that it took on or refused, and how old entries go.
import { hostname } from 'node:os';
import type { Config } from '../config/config.ts';
import {
  differingMembers,
  type AuditCause,
  type AuditChange,
  type AuditEntry,
  type AuditMembers,
} from '../domain/audit.ts';
import type { Clock, Schedule } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { AuditStore } from '../registry/store/audit-ports.ts';
import { configDifference, configName } from './config-members.ts';
import { keepPruning } from './pruning.ts';

export type ConfigAudit = {
  /** Notes a configuration that is in force from now on. */
  readonly taken: (before: Config, next: Config) => Promise<void>;
  /** Notes that a configuration was not taken on; `reason` holds no secret. */
  readonly refused: (reason: string) => Promise<void>;
  readonly close: () => void;
};

type AuditDeps = {
  readonly version: string;
  readonly clock: Pick<Clock, 'now'>;
  readonly schedule: Schedule;
  readonly log: Log;
};

const FIRST_MS = 30_000;
const SELDOM_MS = 10 * 60_000;
const MOST_ENTRIES = 1_000_000;
const CAUSE: AuditCause = { actor: 'configuration', via: 'configuration', requestId: null };

/** `config` gives the one in force. */
export function startAudit(
  audit: AuditStore,
  config: () => Config,
  { version, clock, schedule, log }: AuditDeps,
): ConfigAudit {
  const subject = hostname();
  const note = async (kind: AuditEntry['kind'], { from, to }: AuditChange): Promise<void> => {
    await audit.add({ ...CAUSE, at: clock.now(), kind, subject, from, to });
  };
  const tell = (writing: Promise<void>): Promise<void> =>
    writing.catch((error: unknown) => log.warn('a configuration was not noted in the audit log', { error }));
  /** Restarts with the configuration and the version of before are no news. */
  const noteStart = async (): Promise<void> => {
    const [last] = await audit.list({ kind: 'config.taken', subject, limit: 1 });
    const before: AuditMembers = last?.to ?? {};
    const known = { version: before['version'] ?? null, configuration: before['configuration'] ?? null };
    const now = { version, configuration: configName(config()) };
    const differing = differingMembers(last === undefined ? {} : known, now);
    if (Object.keys(differing.to).length > 0) await note('config.taken', { ...differing, to: now });
  };
  void tell(noteStart());
  const stopPruning = keepPruning({
    ...{ schedule, log, firstMs: FIRST_MS, seldomMs: SELDOM_MS, what: 'entries of the audit log' },
    prune: () => audit.prune(clock.now() - (config().registry?.audit.keepMs ?? clock.now()), MOST_ENTRIES),
  });
  return {
    taken: (before, next) => {
      const { from, to } = configDifference(before, next);
      const name = { version, configuration: configName(next) };
      return tell(note('config.taken', { from, to: { ...to, ...name } }));
    },
    refused: (reason) => tell(note('config.refused', { from: {}, to: { reason } })),
    close: stopPruning,
  };
}
