// What the upstream's router is known to do with a path. `unknown` folds everything that any measured router folds; a
// named profile only ever switches folding off, so a wrong guess towards `unknown` costs a 402 too many and never a
// request for nothing. A profile is true for the framework's default settings.

/** Which spellings of a path count as the same path when routes are matched. */
export type Folding = {
  /** `/V1/Export` is `/v1/export`. */
  readonly letterCase: boolean;
  /** Unicode compatibility forms (NFKC): fullwidth letters, ligatures, the Kelvin sign. */
  readonly compatibility: boolean;
  /** `;parameters` of a segment are not part of it, or the path ends at the first `;`. */
  readonly matrix: boolean;
  /** `/v1/export.json` may be `/v1/export`, where no route matches the whole. */
  readonly suffix: boolean;
  /** Dots and spaces at the end of a segment do not count. */
  readonly trim: boolean;
};

const EVERYTHING: Folding = { letterCase: true, compatibility: true, matrix: true, suffix: true, trim: true };
const NOTHING: Folding = { letterCase: false, compatibility: false, matrix: false, suffix: false, trim: false };

const PROFILES = {
  unknown: EVERYTHING,
  express: { ...NOTHING, letterCase: true },
  fastify: NOTHING,
  koa: { ...NOTHING, letterCase: true },
  hono: NOTHING,
  h3: NOTHING,
  hapi: NOTHING,
  next: { ...NOTHING, suffix: true },
  fastapi: NOTHING,
  django: NOTHING,
  flask: NOTHING,
  rails: { ...NOTHING, suffix: true },
  sinatra: NOTHING,
  spring: { ...EVERYTHING, trim: false },
  aspnet: { ...EVERYTHING, matrix: false },
  go: NOTHING,
  nginx: NOTHING,
  caddy: { ...NOTHING, letterCase: true, trim: true },
  php: NOTHING,
} as const satisfies Record<string, Folding>;

export type ProfileName = keyof typeof PROFILES;
export const PROFILE_NAMES = Object.keys(PROFILES) as readonly ProfileName[];

export function profileFolding(name: ProfileName): Folding {
  return PROFILES[name];
}

/** The folding that a registry uses for a pattern's key, whatever stands behind its proxies. */
export const FULL_FOLDING: Folding = EVERYTHING;
