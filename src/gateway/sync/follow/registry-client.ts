// Calls of a sidecar to its registry: with its key, without redirects or caches. A read whose connection broke is tried
// once more. The callers decide when to ask again after that, and what each status means.
import ky, { type KyInstance } from 'ky';

type RegistryClientOptions = {
  /** URL of the registry, without a slash at its end. */
  readonly registryUrl: string;
  readonly apiKey: string;
  /** The version of Tollgate that User-Agent names. */
  readonly version: string;
  /** The name by which the registry counts its sidecars. */
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
