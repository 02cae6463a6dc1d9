// The part of a process that answers clients and proxies: the proxy, decision listeners, or both.
import type { Config } from '../config/config.ts';
import type { Discovery } from '../domain/discovery/listing.ts';
import type { Listener } from '../host/server.ts';
import type { Trial } from '../registry/trying/trial.ts';
import type { BoundListener } from './part.ts';
import type { OwnTrial } from './trial.ts';

/** `L`: what its listeners can do here; `T`: how its answers are tried. */
export type FrontPart<L extends BoundListener = BoundListener, T extends Trial = Trial> = {
  readonly listeners: readonly (readonly [name: string, listener: L])[];
  /** Assembles for a new configuration; what is returned puts it in force and cannot fail. */
  readonly prepare: (config: Config, discovery: Discovery | undefined) => (() => void) | Promise<() => void>;
  /** What the front in force would write to clients that reach it under `origin`. */
  readonly trial: (origin: string) => T;
  readonly close: () => void | Promise<void>;
};

/** The front in the process that serves it. */
export type OwnFront = FrontPart<Listener, OwnTrial>;
