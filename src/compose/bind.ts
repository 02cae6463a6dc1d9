// Binds the listeners of a process one after the other, and says what to change if one cannot be bound.
import { formatListen } from '../config/addresses.ts';
import type { Config } from '../config/config.ts';
import type { Listener } from '../host/server.ts';

/** Where each listener is bound: `proxy`, `registry`, `sync`, `admin`, those that the configuration has. */
export type Addresses = Readonly<Record<string, { readonly address: string; readonly port: number }>>;

/** Rejects with the key to change if one cannot be bound. */
export async function bindAll(
  config: Config,
  listeners: readonly (readonly [name: string, listener: Listener])[],
): Promise<Addresses> {
  const addresses: Record<string, Addresses[string]> = {};
  for (const [name, listener] of listeners) {
    addresses[name] = await listener.start().catch((error: unknown) => {
      throw unbound(config, name, error);
    });
  }
  return addresses;
}

function unbound({ proxy, registry, sync, admin }: Config, name: string, error: unknown): Error {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const why: Readonly<Record<string, string>> = {
    EADDRINUSE: 'is taken by another program; end that one, or write another address',
    EACCES: 'may not be bound by this user; write a port from 1024 up',
    EADDRNOTAVAIL: 'is no address of this machine; write one that is, or 0.0.0.0 for all',
    ENOTFOUND: 'is a name without an address; write an address of this machine, or 0.0.0.0 for all',
  };
  const listen = new Map(Object.entries({ proxy, registry, sync, admin })).get(name)?.listen;
  const place = listen === undefined ? 'it' : formatListen(listen);
  return new Error(`${name}.listen: ${place} ${why[code] ?? `cannot be bound (${code})`}`, { cause: error });
}
