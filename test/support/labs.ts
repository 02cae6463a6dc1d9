// Wire labs and clients of theirs for one test file: whatever a test opened is closed when it is over, the last one first.
import { afterEach } from 'vitest';
import { openRaw, type RawClient } from './raw-client.ts';
import { startWireLab, type WireLab } from './wire-lab.ts';

export type Labs = {
  readonly lab: (...options: Parameters<typeof startWireLab>) => Promise<WireLab>;
  readonly client: (lab: Pick<WireLab, 'gateway'>) => Promise<RawClient>;
  /** Calls `close` when the test is over. */
  readonly onEnd: (close: () => unknown) => void;
  /** Closes everything now: for a test that begins anew. */
  readonly closeAll: () => Promise<void>;
};

/** Called once at the top of a test file. */
export function createLabs(): Labs {
  const closers: (() => unknown)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  afterEach(closeAll);
  return {
    lab: async (...options) => {
      const made = await startWireLab(...options);
      closers.push(made.close);
      return made;
    },
    client: async ({ gateway }) => {
      const opened = await openRaw(gateway.port);
      closers.push(opened.close);
      return opened;
    },
    onEnd: (close) => void closers.push(close),
    closeAll,
  };
}
