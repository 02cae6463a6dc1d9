// Takes what we sent to a facilitator as a secret out of what it answers: a careless one repeats a token in a header or in
// the reason of a refusal, and both reach the log, and a reason reaches clients too. A secret is found as it was sent, in
// any case, percent-encoded, in escapes of JSON, and in base64. A facilitator that hides it on purpose has it anyway.

/** Takes the secrets of one call out of texts. */
export type SecretFilter = {
  /** Takes the secrets out of `text`. */
  readonly text: (text: string) => string;
  /** Takes the secrets out of every text in `value`, plain JSON, that may be shown. */
  readonly json: (value: unknown) => unknown;
};

const REMOVED = '[secret]';
/** A shorter secret is taken out only as a whole word: it may be part of others. */
const SHORT = 8;
/** Length of the shortest secret: nothing below can be told from ordinary text. */
const SHORTEST = 4;
/** A part of a token between dots. */
const TOKEN_PART = 16;
/** Texts in base64 that hold texts in base64. */
const MAX_DEPTH = 3;
const NOTHING = '[]';
const BASE64 = /[A-Za-z0-9+/_-]{8,}={0,2}/g;

/** Members of answers that are compared with what we asked for, and never shown: a header may say the same. */
const COMPARED = new Set(['scheme', 'network', 'asset', 'payer', 'payTo', 'amount']);

/**
 * Makes a filter. `secrets` are as they were sent. `isOurs` tells whether a text is a word that the code knows, which
 * is nobody's secret.
 */
export function createSecretFilter(secrets: readonly string[], isOurs: (text: string) => boolean): SecretFilter {
  const pattern = patternOf(secrets.flatMap(piecesOf));
  const holds = (text: string): boolean => text.search(pattern) >= 0;
  const takeOut = (text: string, depth: number): string => {
    let shown = text;
    for (const read of READINGS) {
      const meant = read(shown);
      if (holds(meant)) shown = meant.replace(pattern, REMOVED);
    }
    return depth >= MAX_DEPTH ? shown : shown.replace(BASE64, (run) => decode(run, depth));
  };
  const decode = (run: string, depth: number): string => {
    const meant = Buffer.from(run, 'base64').toString();
    const shown = takeOut(meant, depth + 1);
    if (shown !== meant) return Buffer.from(shown).toString('base64');
    // The secret may stand behind other letters of the alphabet.
    const isHidden = [1, 2, 3].some((offset) => holds(Buffer.from(run.slice(offset), 'base64').toString('latin1')));
    return isHidden ? REMOVED : run;
  };

  const text = (value: string): string => (isOurs(value) ? value : takeOut(value, 0));
  const json = (value: unknown): unknown => {
    if (typeof value === 'string') return text(value);
    if (Array.isArray(value)) return value.map(json);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [name, COMPARED.has(name) ? member : json(member)]),
    );
  };
  return { text, json };
}

/** The ways in which a text may spell another. */
const READINGS: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16))),
  (text) =>
    text.replace(/\\(?:u([0-9a-f]{4})|(["\\/]))/gi, (_, hex: string | undefined, escaped: string) =>
      hex === undefined ? escaped : String.fromCharCode(parseInt(hex, 16)),
    ),
];

/** A header's value whole, and what may be repeated of it: a credential without its scheme, a password, parts of a token. */
function piecesOf(value: string): readonly string[] {
  const parts = value.split(/[\s,;]+/).filter((part) => part.length >= SHORT);
  const [, basic] = /^basic +(\S+)$/i.exec(value) ?? [];
  const [, password] = /^[^:]*:(.*)$/s.exec(Buffer.from(basic ?? '', 'base64').toString()) ?? [];
  const [, credential = ''] = /^[a-z]+ +(\S+)$/i.exec(value) ?? [];
  const ofTokens = parts.flatMap((part) => part.split('.')).filter((part) => part.length >= TOKEN_PART);
  return [value, credential, ...parts, ...ofTokens, ...(password === undefined ? [] : [password])];
}

/** Matches each of `secrets`. */
function patternOf(secrets: readonly string[]): RegExp {
  const found = [...new Set(secrets)].filter(({ length }) => length >= SHORTEST);
  const written = found
    .toSorted((a, b) => b.length - a.length)
    .map((secret) => {
      const literal = secret.replace(/[^A-Za-z0-9]/g, (character) => `\\x${hexOf(character)}`);
      return secret.length < SHORT ? `(?<![A-Za-z0-9_])${literal}(?![A-Za-z0-9_])` : literal;
    });
  return new RegExp(written.join('|') || NOTHING, 'gi');
}

/** Headers and paths are Latin-1 at most. */
function hexOf(character: string): string {
  return (character.charCodeAt(0) & 0xff).toString(16).padStart(2, '0');
}
