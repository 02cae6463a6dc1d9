// The configuration in force. Its owner (compose.ts, or a worker's program) replaces it at a reload; everybody else
// reads it whenever it is needed.
import type { Config } from '../config/config.ts';

export type Settings = { readonly config: Config };

type OwnSettings = Settings & {
  /** Puts `next` in force. */
  readonly replace: (next: Config) => void;
};

/** A plain property and no function: requests read it. */
export function createSettings(config: Config): OwnSettings {
  const settings = {
    config,
    replace: (next: Config): void => {
      settings.config = next;
    },
  };
  return settings;
}
