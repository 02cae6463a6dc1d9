// Sign-ins that were refused, on their way into the audit log. Whoever guesses must not push out what others did: the first
// refusal of an address is noted at once, and those of the rest of the hour together at its end; beyond a few addresses an
// hour all are counted as one.
import type { AuditEntry } from '../../domain/audit.ts';
import type { Schedule } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { AuditStore } from '../store/audit-ports.ts';
import type { SignInWay } from '../store/desk-ports.ts';

export type RefusedSignIns = {
  /** `address`: of the client, or of its network. */
  readonly refused: (via: SignInWay, address: string) => void;
  /** Notes what is left; resolves once it is written, or cannot be. */
  readonly close: () => Promise<void>;
};

type RefusedSignInsDeps = {
  readonly audit: Pick<AuditStore, 'add'>;
  readonly now: () => number;
  readonly schedule: Schedule;
  readonly log: Log;
};

const HOUR_MS = 3_600_000;
/** Addresses with entries of their own in an hour: with them a year of attacks is 350,000 entries at most. */
export const MOST_ADDRESSES = 20;

type Counted = { readonly via: SignInWay; readonly address: string; attempts: number };

export function createRefusedSignIns({ audit, now, schedule, log }: RefusedSignInsDeps): RefusedSignIns {
  const counted = new Map<string, Counted>();
  let elsewhere = 0;
  let cancel: (() => void) | undefined;
  let written: Promise<void> = Promise.resolve();

  const write = (via: SignInWay | undefined, address: string | undefined, attempts: number): void => {
    const to = { ...(via === undefined ? {} : { way: via }), attempts };
    const entry: AuditEntry = {
      ...{ actor: '', via: 'tollgate', requestId: null, at: now() },
      ...{ kind: 'session.refused', subject: address ?? '', from: {}, to },
    };
    const writing = audit.add(entry).catch((error: unknown) => log.warn('a refused sign-in was not noted', { error }));
    written = Promise.all([written, writing]).then(() => undefined);
  };
  const end = (): void => {
    cancel?.();
    cancel = undefined;
    for (const { via, address, attempts } of counted.values()) if (attempts > 0) write(via, address, attempts);
    if (elsewhere > 0) write(undefined, undefined, elsewhere);
    counted.clear();
    elsewhere = 0;
  };
  return {
    refused: (via, address) => {
      cancel ??= schedule(HOUR_MS, end);
      const name = `${via} ${address}`;
      const known = counted.get(name);
      if (known !== undefined) known.attempts += 1;
      else if (counted.size >= MOST_ADDRESSES) elsewhere += 1;
      else {
        counted.set(name, { via, address, attempts: 0 });
        write(via, address, 1);
      }
    },
    close: () => {
      end();
      return written;
    },
  };
}
