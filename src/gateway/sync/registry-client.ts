// Calls of a sidecar to its registry: with its key, without redirects or caches. A read whose connection broke is tried
// once more. When to ask again after that, and which status means what, is for those who ask to say.
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

const PAUSE_MS = 100;

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
    retry: { limit: 1, methods: ['get'], delay: () => PAUSE_MS },
    timeout: false,
    redirect: 'manual',
    cache: 'no-store',
  });
}
