// How a sidecar speaks to its registry: with its key, without redirects, caches or retries of the library's own. When to
// ask again and which status means what is for those who ask to say.
import ky, { type KyInstance } from 'ky';

export type RegistryClientOptions = {
  /** Without a slash at its end. */
  readonly registryUrl: string;
  readonly apiKey: string;
  /** Named to the registry. */
  readonly version: string;
  /** By which the registry counts its sidecars. */
  readonly instance?: string;
  readonly fetch: typeof globalThis.fetch;
};

export function createRegistryClient({
  registryUrl,
  apiKey,
  version,
  instance,
  fetch,
}: RegistryClientOptions): KyInstance {
  return ky.create({
    prefix: registryUrl,
    fetch,
    headers: {
      Authorization: `Bearer ${apiKey}`,
      'User-Agent': `tollgate/${version}`,
      ...(instance === undefined ? {} : { 'Tollgate-Instance': instance }),
    },
    throwHttpErrors: false,
    retry: 0,
    timeout: false,
    redirect: 'manual',
    cache: 'no-store',
  });
}
