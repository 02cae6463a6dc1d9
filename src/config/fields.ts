// The kinds of scalar that a configuration is made of, each with one sentence that says what would be right. A message
// never repeats the value it is about.
import { z } from 'zod';
import { HOST_ADVICE, isNearby, LISTEN_ADVICE, parseCidr, parseHost, parseListen } from './addresses.ts';
import { DURATION_ADVICE, formatDuration, LONGEST_TIMER_MS, parseDuration } from './durations.ts';

/** Says what stands in the wrong place: `is missing`, `is a number`, ... */
export function whatStands(input: unknown): string {
  if (input === undefined) return 'is missing';
  if (input === null) return 'is empty';
  if (Array.isArray(input)) return 'is a list';
  if (typeof input === 'object') return 'is a section';
  return typeof input === 'string' ? 'is text' : typeof input === 'number' ? 'is a number' : 'is true or false';
}

const taken = z.registry<{ takes: string }>();

/** Describes `schema` for the table of keys, which says what it takes. */
export function described<Schema extends z.ZodType>(schema: Schema, takes: string): Schema {
  taken.add(schema, { takes });
  return schema;
}

/** Says what `schema` takes, in words; empty if it was not said. */
export function takesOf(schema: unknown): string {
  if (!(schema instanceof z.ZodType)) return '';
  const own = taken.get(schema)?.takes;
  if (own !== undefined) return own;
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault)
    return takesOf(schema.def.innerType);
  if (schema instanceof z.ZodArray) return `a list: ${takesOf(schema.element)}`.replace(/: $/, '');
  if (!(schema instanceof z.ZodPipe)) return '';
  return takesOf(schema.def.in) || takesOf(schema.def.out);
}

/** A string that `accepts` takes; `right` completes both "is missing; write ..." and "is not ...". */
export function text(right: string, accepts: (value: string) => boolean = (value) => value !== '') {
  const wrongType = ({ input }: { input?: unknown }): string => {
    const quote = typeof input === 'number' || typeof input === 'boolean' ? ': quote it' : '';
    return `${whatStands(input)}${quote}; write ${right}`;
  };
  return described(z.string({ error: wrongType }).refine(accepts, { error: `is not ${right}` }), right);
}

export function count(min: number, max: number) {
  return whole(min, max, `a whole number from ${min} to ${max}`);
}

/** A limit that can be switched off: `off` and 0 both do, and become 0. */
export function limit(max: number) {
  return z.preprocess(
    (value) => (value === 'off' ? 0 : value),
    whole(0, max, `a whole number from 1 to ${max}, or off`),
  );
}

/** A count, or a word in its place. */
export function countOr<const Word extends string>(min: number, max: number, word: Word) {
  const right = `a whole number from ${min} to ${max}, or ${word}`;
  const number = whole(min, max, right);
  return described(
    z.unknown().transform((value, context): number | Word => {
      if (value === word) return word;
      const read = number.safeParse(value);
      if (read.success) return read.data;
      for (const { message } of read.error.issues) {
        // A number's place: text from the environment is read as one.
        if (typeof value === 'number') context.addIssue(message);
        else context.addIssue({ code: 'invalid_type', expected: 'number', input: value, message });
      }
      return z.NEVER;
    }),
    right,
  );
}

function whole(min: number, max: number, right: string) {
  return described(
    z
      .number({ error: ({ input }) => `${whatStands(input)}; write ${right}` })
      .refine((value) => Number.isInteger(value) && value >= min && value <= max, { error: `is not ${right}` }),
    right,
  );
}

export function flag() {
  return described(z.boolean({ error: ({ input }) => `${whatStands(input)}; write true or false` }), 'true or false');
}

export function choice<const T extends readonly [string, ...string[]]>(values: T) {
  return described(
    z.enum(values, {
      error: ({ input }) => `${typeof input === 'string' ? 'is not known' : whatStands(input)}; write ${oneOf(values)}`,
    }),
    oneOf(values),
  );
}

export function oneOf(values: readonly string[]): string {
  return values.length < 2 ? values.join('') : `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;
}

/** Becomes milliseconds. */
export function duration(minMs = 0, maxMs = LONGEST_TIMER_MS) {
  const from = formatDuration(minMs);
  const to = maxMs === LONGEST_TIMER_MS ? '596h' : formatDuration(maxMs);
  return described(
    text(DURATION_ADVICE, (value) => parseDuration(value) !== undefined)
      .transform((value) => parseDuration(value) ?? Number.NaN)
      .refine((ms) => ms >= minMs && ms <= maxMs, { error: `is out of range; write ${from} to ${to}` }),
    `a duration from ${from} to ${to}`,
  );
}

/** Schema of a duration in milliseconds, or undefined if `off` or 0 stands. */
export function optionalDuration(minMs: number) {
  const right = `off, or a duration of at least ${formatDuration(minMs)}`;
  return z.preprocess(
    (value) => (value === 0 ? 'off' : value),
    text(right, (value) => value === 'off' || (parseDuration(value) ?? -1) >= minMs).transform((value) =>
      value === 'off' ? undefined : parseDuration(value),
    ),
  );
}

/** Becomes a Listen. */
export function listen() {
  return text(LISTEN_ADVICE, (value) => parseListen(value) !== undefined).transform(
    (value) => parseListen(value) ?? { host: '', port: 0 },
  );
}

/** Becomes a HostPort. */
export function host() {
  return text(HOST_ADVICE, (value) => parseHost(value) !== undefined).transform(
    (value) => parseHost(value) ?? { host: '', port: undefined },
  );
}

export function cidr() {
  return text('an address or a network, such as 10.0.0.0/8 or fd00::/8', (value) => parseCidr(value) !== undefined);
}

/** An http or https URL that holds no user, query or fragment; becomes the URL without a slash at its end. */
export function url(right: string, accepts: (parsed: URL) => boolean = () => true) {
  return text(right, (value) => {
    const parsed = parseUrl(value);
    return parsed !== undefined && accepts(parsed);
  }).transform((value) => (parseUrl(value)?.href ?? '').replace(/\/+$/, ''));
}

export function parseUrl(value: string): URL | undefined {
  // The URL parser takes backslashes, tabs and missing slashes for what they are not.
  if (!/^https?:\/\/[^\s\\?#@]+$/i.test(value) || !URL.canParse(value)) return undefined;
  return new URL(value);
}

/** Whether what is sent there stays readable only to those it is for: https, or plain http that does not leave home. */
export function isSafeUrl(value: string): boolean {
  const parsed = parseUrl(value);
  return parsed !== undefined && (parsed.protocol === 'https:' || isNearby(hostOf(parsed)));
}

/** The host of `parsed` without the brackets of an IPv6 address. */
export function hostOf(parsed: URL): string {
  return parsed.hostname.replace(/^\[|\]$/g, '');
}

/** A browser origin, or `*`. */
export function origin() {
  return text(
    'an origin, such as https://app.example.com, or "*"',
    (value) => value === '*' || originOf(value) === value,
  );
}

function originOf(value: string): string | undefined {
  return parseUrl(value)?.origin;
}

const SECRET_BYTES = 32;

export function secret() {
  return text(
    `a secret of at least ${SECRET_BYTES} bytes, such as what \`openssl rand -base64 32\` prints`,
    (value) => Buffer.byteLength(value) >= SECRET_BYTES,
  );
}

export function apiKey() {
  return text('a key of 16 to 512 visible ASCII characters, without spaces', (value) =>
    /^[\x21-\x7e]{16,512}$/.test(value),
  );
}

export function identifier(what: string) {
  return text(`${what}: up to 64 letters, digits, dots, dashes and underscores`, (value) =>
    /^[A-Za-z0-9_.-]{1,64}$/.test(value),
  );
}

export function headerName(right: string) {
  return text(right, (value) => /^[A-Za-z0-9-]{1,64}$/.test(value));
}
