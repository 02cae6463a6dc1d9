// Profiles of the upstream's router: what it is known to do with a path. `unknown` folds everything that any measured
// router folds. A named profile only ever switches folding off. So a wrong guess towards `unknown` costs one 402 too
// many, and never gives a request away. A profile is true for the framework's default settings.

/** Spellings of a path that count as the same path when routes are matched. */
export type PathFolding = {
  /** `/V1/Export` is `/v1/export`. */
  readonly letterCase: boolean;
  /** Unicode compatibility forms (NFKC): fullwidth letters, ligatures, the Kelvin sign. */
  readonly compatibility: boolean;
  /** `;parameters` of a segment are not part of it, or the path ends at the first `;`. */
  readonly matrix: boolean;
  /** `/v1/export.json` may be `/v1/export`, if no route matches the whole. */
  readonly suffix: boolean;
  /** Dots and spaces at the end of a segment do not count, nor do spaces at its beginning. */
  readonly trim: boolean;
  /** A parameter may be filled by nothing: `/v1/reports/` may be `/v1/reports/:id`. */
  readonly empty: boolean;
  /** The path may be read as a form's value: `+` is a space and `&` ends it. */
  readonly form: boolean;
  /** `/index.php/v1/export` may be `/v1/export`, and `/v1/export.php/x` may be `/v1/export.php`. */
  readonly script: boolean;
  /** `/_next/data/ID/v1/export.json` and `/v1/export/__data.json` may be `/v1/export`. */
  readonly pageData: boolean;
  /** `/v1/export/index` and `/v1/export/index.html` may be `/v1/export`, and `/index.php` the root. */
  readonly index: boolean;
  /** `/v1.export` may be `/v1/export`. */
  readonly dots: boolean;
  /** `/v1/daily-report` may be `/v1/daily_report`. */
  readonly dashes: boolean;
  /** `/v1/@@export` may be `/v1/export`. */
  readonly views: boolean;
  /** `/trpc/free,export` may be `/trpc/free` and `/trpc/export`. */
  readonly lists: boolean;
};

const EVERYTHING: PathFolding = {
  letterCase: true,
  compatibility: true,
  matrix: true,
  suffix: true,
  trim: true,
  empty: true,
  form: true,
  script: true,
  pageData: true,
  index: true,
  dots: true,
  dashes: true,
  views: true,
  lists: true,
};
const NOTHING: PathFolding = {
  letterCase: false,
  compatibility: false,
  matrix: false,
  suffix: false,
  trim: false,
  empty: false,
  form: false,
  script: false,
  pageData: false,
  index: false,
  dots: false,
  dashes: false,
  views: false,
  lists: false,
};

/** The foldings of spelling, without the further names of one framework. */
const DECODING: PathFolding = {
  ...EVERYTHING,
  pageData: false,
  index: false,
  dots: false,
  dashes: false,
  views: false,
  lists: false,
};

const PROFILES = {
  unknown: EVERYTHING,
  express: { ...NOTHING, letterCase: true },
  // Fastify's router fills a parameter at the end with nothing.
  fastify: { ...NOTHING, empty: true },
  koa: { ...NOTHING, letterCase: true },
  hono: NOTHING,
  // The first version of h3 decodes a path before it cuts the query off, and fills a parameter at the end with nothing.
  h3: { ...NOTHING, matrix: true, empty: true },
  hapi: NOTHING,
  next: { ...NOTHING, suffix: true, pageData: true },
  fastapi: NOTHING,
  django: NOTHING,
  flask: NOTHING,
  rails: { ...NOTHING, suffix: true },
  // A space in a pattern is also matched by a plus sign.
  sinatra: { ...NOTHING, form: true },
  spring: { ...DECODING, trim: false },
  aspnet: { ...DECODING, matrix: false, index: true },
  // ServeMux does not, but Echo and chi fill parameters with nothing.
  go: { ...NOTHING, empty: true },
  nginx: NOTHING,
  // Caddy compares in the lower case of Unicode: the Kelvin sign is a k.
  caddy: { ...NOTHING, letterCase: true, trim: true },
  // PHP has no router. A rewrite rule makes the path a query, which each application trims and splits in its own way. A
  // script also runs if more path follows its name, and its suffix may be hidden. Frameworks call the method that a
  // segment names: letter case does not count, and a dash is an underscore.
  php: { ...DECODING, compatibility: false, index: true, dashes: true },
} as const satisfies Record<string, PathFolding>;

export type ProfileName = keyof typeof PROFILES;
export const PROFILE_NAMES = Object.keys(PROFILES) as readonly ProfileName[];

export function profileFolding(name: ProfileName): PathFolding {
  return PROFILES[name];
}

/** The folding that a registry uses for a pattern's key, whatever stands behind its proxies. */
export const FULL_FOLDING: PathFolding = EVERYTHING;
