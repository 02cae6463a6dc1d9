// Cross-origin access: only for origins that the configuration names, and never with cookies, which nothing here knows.

type CorsPolicy = {
  /** Origins that may ask; `*` stands for any. */
  readonly origins: readonly string[];
  /** Names of response headers that a page may read. */
  readonly exposed: string;
};

const PREFLIGHT_SECONDS = '600';

/** Headers for a response to a request that names `origin`: flat name, value pairs. */
export function corsHeaders(origin: string | undefined, { origins, exposed }: CorsPolicy): readonly string[] {
  if (origins.length === 0) return [];
  if (origins.includes('*')) return ['Access-Control-Allow-Origin', '*', 'Access-Control-Expose-Headers', exposed];
  if (origin === undefined || !origins.includes(origin)) return ['Vary', 'Origin'];
  return ['Vary', 'Origin', 'Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', exposed];
}

/** Headers of a response to a preflight: the methods of the path, and the request headers that a page may send. */
export function preflightHeaders(methods: string, headers: string): readonly string[] {
  return [
    ...['Access-Control-Allow-Methods', methods, 'Access-Control-Allow-Headers', headers],
    ...['Access-Control-Max-Age', PREFLIGHT_SECONDS],
  ];
}
