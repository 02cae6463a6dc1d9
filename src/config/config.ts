// The configuration as the rest of the program sees it: what the schema makes of a file, camelCase, complete, durations in
// milliseconds, sizes in bytes, paths absolute. Which of its sections are there decides which parts run.
import type { Receiver } from '../domain/payment/offer.ts';
import type { DecisionConfig } from './front.ts';
import type { ConfigSections } from './schema.ts';
import type { SellingConfig } from './selling.ts';

export type Shape = 'all-in-one' | 'sidecar' | 'registry';

/** The configuration as loaded: secrets that a first start makes may be undefined until `resolveSecrets`. */
export type LoadedConfig = Omit<ConfigSections, 'receivers' | 'selling' | 'decision'> & {
  readonly shape: Shape;
  /** The file it was read from, absolute; undefined if it was put together from flags. */
  readonly file: string | undefined;
  /** Folder that relative paths were resolved against. */
  readonly folder: string;
  readonly receivers: readonly Receiver[];
  readonly selling: SellingConfig;
  /** Listeners that answer the questions of proxies. */
  readonly decision: readonly DecisionConfig[] | undefined;
  /** Settings by which requests are judged: those of the proxy, else of the first decision listener. */
  readonly front: ProxyConfig | undefined;
};

type Section<Name extends keyof ConfigSections> = NonNullable<ConfigSections[Name]>;
type WithRequired<T, K extends keyof T> = Omit<T, K> & { readonly [key in K]: NonNullable<T[key]> };

/** Everything, secrets included: what `startTollgate` takes. */
export type Config = Omit<LoadedConfig, 'registry' | 'charges'> & {
  readonly registry: RegistryConfig | undefined;
  readonly charges: ChargesConfig;
};
export type { DecisionConfig } from './front.ts';
export type ProxyConfig = Section<'proxy'>;
export type RegistryConfig = WithRequired<Section<'registry'>, 'jwt' | 'apiKeys'>;
export type SyncConfig = Section<'sync'>;
type ChargesConfig = WithRequired<ConfigSections['charges'], 'secrets'>;
/** A route of the `routes` section as an SDK would register it; what is stored wins over it. */
export type ConfigRoute = ConfigSections['routes'][number];
