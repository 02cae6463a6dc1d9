// Every secret that a test uses is a canary: it must not be found in anything that Tollgate writes while the test file
// runs. Here is what was used, what was written, and the search; watch-canaries.ts listens and decides. Several files may
// share a process: what one learned by listening is forgotten before the next, whose words may be no secrets.

export type Leak = {
  /** Whose secret: `Authorization`, `jwt.secret`. */
  readonly secret: string;
  /** Who wrote it. */
  readonly writer: string;
  /** What stands around it, without it. */
  readonly around: string;
};

/** Shorter ones would be found in words that mean something else. */
const MIN_LENGTH = 12;
/** A long secret is searched for by pieces, so that part of it is found as well. Its beginning is often no secret. */
const WHOLE = 48;
const PIECE = 24;
const MIN_CHARACTERS = 6;

const needles = new Map<string, { readonly value: string; readonly name: string }[]>();
const known = new Set<string>();
const named = new Map<string, string>();
const written = new Set<{ readonly writer: string; text: string }>();

/**
 * From now on, and for what was written before too. Modules that files share name their secrets once, when they are loaded:
 * they stay until the process ends.
 */
export function keepSecret(name: string, value: string): void {
  named.set(value, name);
  learnSecret(name, value);
}

/** Before a test file: what the file before it learned is none of its secrets, and what that one wrote was searched. */
export function startFile(): void {
  needles.clear();
  known.clear();
  forgetWritten();
  for (const [value, name] of named) learnSecret(name, value);
}

function learnSecret(name: string, value: string): void {
  if (known.has(value)) return;
  known.add(value);
  const pieces =
    value.length <= WHOLE
      ? [value]
      : Array.from({ length: Math.floor(value.length / PIECE) - 1 }, (_, nth) =>
          value.slice(PIECE * (nth + 1), PIECE * (nth + 2)),
        );
  for (const piece of pieces) {
    // `xxxx` and the like are nobody's secret.
    if (piece.length < MIN_LENGTH || new Set(piece).size < MIN_CHARACTERS) continue;
    const start = piece.slice(0, MIN_LENGTH);
    const same = needles.get(start) ?? [];
    needles.set(start, same);
    same.push({ value: piece, name });
  }
}

/** One writer's output is one text, however it arrives. */
export function openOutput(writer: string): (text: string) => void {
  const output = { writer, text: '' };
  return (text) => {
    output.text += text;
    // Each time: the output of a module that files share outlives the file that opened it.
    written.add(output);
  };
}

/** What was found; what was written is forgotten with it. */
export function takeLeaks(): readonly Leak[] {
  const leaks = [...written].flatMap(({ writer, text }) => search(writer, text));
  forgetWritten();
  return leaks;
}

function forgetWritten(): void {
  for (const output of written) output.text = '';
  written.clear();
}

function search(writer: string, text: string): Leak[] {
  const leaks: Leak[] = [];
  for (let at = 0; at + MIN_LENGTH <= text.length; at++) {
    for (const { value, name } of needles.get(text.slice(at, at + MIN_LENGTH)) ?? []) {
      if (!text.startsWith(value, at)) continue;
      const around = `${text.slice(Math.max(0, at - 80), at)}[${name}]${text.slice(at + value.length, at + value.length + 40)}`;
      leaks.push({ secret: name, writer, around: around.replaceAll(/\s+/g, ' ') });
    }
  }
  return leaks;
}

const CREDENTIALS: ReadonlySet<string> = new Set([
  ...['authorization', 'proxy-authorization', 'cookie', 'payment-signature', 'x-payment', 'x-api-key'],
  ...['tollgate-pass', 'sign-in-with-x'],
]);

/** What a request carries that no log may show. */
export function keepRequest(target: string, headers: readonly (readonly [string, string])[]): void {
  const mark = target.indexOf('?');
  if (mark >= 0 && target.includes('=', mark) && target.length - mark >= MIN_LENGTH)
    learnSecret('query', target.slice(mark));
  for (const [name, value] of headers) {
    if (!CREDENTIALS.has(name.toLowerCase())) continue;
    const isCookie = name.toLowerCase() === 'cookie';
    for (const part of value.split(/[\s,;]+/)) learnSecret(name, isCookie ? part.replace(/^[^=]*=/, '') : part);
    const signature = /"signature":"([^"]+)"/.exec(Buffer.from(value, 'base64').toString('latin1'))?.[1];
    if (signature !== undefined) learnSecret(`${name}, its signature`, signature);
  }
}

/** The same for the bytes of a request as a raw client sends them. */
export function keepRawRequest(bytes: string): void {
  const [line = '', ...fields] = bytes.split('\r\n');
  const headers = fields.flatMap((field): (readonly [string, string])[] => {
    const colon = field.indexOf(':');
    return colon > 0 ? [[field.slice(0, colon), field.slice(colon + 1).trim()]] : [];
  });
  keepRequest(line.split(' ')[1] ?? '', headers);
}
