// A primary gives its worker the checked configuration, secrets included, and the place where it answers. They cross as
// one text over the channel between them, never by environment or file. A key crosses in the form in which it was read.
import { createPrivateKey, KeyObject } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import type { Config } from '../../config/config.ts';
import type { Publication } from '../../domain/discovery/publication.ts';
import type { StoreSettings } from '../../domain/store-settings.ts';
import type { DescriptionInForce } from '../discovery/discovery.ts';

/** The part of the bootstrap that a reload changes too. */
export type WorkerConfig = {
  /** The configuration without the sections that are the primary's alone. */
  readonly config: Config;
};

/** The API description as the primary read it: no worker reads it again. It has a message of its own when it is ready. */
export type HandedDescription = { readonly description: DescriptionInForce };

/** Publication as far as it was made; it has a message of its own too. */
export type HandedPublication = { readonly publication: Publication | undefined };

/** The primary has its first routes: a worker that found none there asks again at once. */
export type HandedRoutes = { readonly routes: 'there' };

/** What a primary tells its workers between configurations. */
export type Notice = HandedDescription | HandedPublication | HandedRoutes;

export type WorkerBootstrap = WorkerConfig &
  HandedDescription &
  HandedPublication & {
    readonly socketPath: string;
    /** Key for calls on that socket. */
    readonly key: string;
    /** Store if it is not `own`: shared with others, and served by each worker itself. */
    readonly store: StoreSettings | undefined;
    /** Owner of the ledger that the worker writes charges into. */
    readonly ledger: 'primary' | 'own' | 'registry' | 'none';
    /** The primary has routes in force: the worker waits for them. */
    readonly hasRoutes: boolean;
    readonly version: string;
  };

type HandedKey = { readonly handedKey: Buffer };

export function writeGiven(given: WorkerConfig | Notice | WorkerBootstrap): string {
  return serialize(exchange(given, handKey)).toString('base64');
}

export function readGiven(text: string): WorkerBootstrap {
  return read(text) as WorkerBootstrap;
}

export function readConfigured(text: string): WorkerConfig {
  return read(text) as WorkerConfig;
}

export function readNoticed(text: string): Notice {
  return read(text) as Notice;
}

function read(text: string): unknown {
  return exchange(deserialize(Buffer.from(text, 'base64')), takeKey);
}

function handKey(value: object): unknown {
  if (!(value instanceof KeyObject)) return undefined;
  return { handedKey: value.export({ format: 'der', type: 'pkcs8' }) } satisfies HandedKey;
}

function takeKey(value: object): unknown {
  if (!('handedKey' in value) || !(value.handedKey instanceof Uint8Array)) return undefined;
  return createPrivateKey({ key: Buffer.from(value.handedKey), format: 'der', type: 'pkcs8' });
}

/** A copy, with what `replace` makes of each object in it; undefined: it is copied. */
function exchange(value: unknown, replace: (value: object) => unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const instead = replace(value);
  if (instead !== undefined) return instead;
  if (Array.isArray(value)) return value.map((each) => exchange(each, replace));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, exchange(each, replace)]));
}
