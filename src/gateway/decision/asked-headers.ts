// The headers of a question, read in one pass: what is asked, and whether the client forged one. Names that most requests have
// are judged once, when the reader is made; each name of each question costs a tenth of a decision.
import { INBOUND, spellings } from '../header-rules.ts';
import type { DialectRules } from './dialect-rules.ts';
import { forgeryOf, type Forgery, type ForgedHeaderRules } from './forged-headers.ts';

/** Stands for the value of a header that stands twice. */
export const DOUBLE = Symbol('a header that stands twice');

export type AskedValue = string | typeof DOUBLE | undefined;

/** Values of the headers that carry the question; undefined: it is not there. */
export type AskedValues = {
  method: AskedValue;
  target: AskedValue;
  url: AskedValue;
  host: AskedValue;
  requestId: AskedValue;
  secret: AskedValue;
};

export type AskedHeaders = {
  readonly values: Readonly<AskedValues>;
  /** Lower-cased names of the first header that may not be there, and of the first that may not on a protected path. */
  readonly forged: string | undefined;
  readonly override: string | undefined;
};

/** Header with the authority that the client used. */
export const FORWARDED_HOST = 'x-forwarded-host';

/** Headers of a question whose names are kept for the next one. */
const PLACES = 64;

type JudgedName = {
  readonly written: string;
  readonly name: string;
  readonly meaning: keyof AskedValues | undefined;
  readonly forgery: Forgery;
};

/** Makes a reader of raw headers: flat name, value pairs. `secretHeader`: lower-cased name of the header with the secret. */
export function createHeaderReader(
  { question, requestId }: DialectRules,
  secretHeader: string,
  forgeries: ForgedHeaderRules,
): (raw: readonly string[]) => AskedHeaders {
  const meanings = new Map<string | undefined, keyof AskedValues>([
    [question?.method, 'method'],
    [question?.target, 'target'],
    [question?.url, 'url'],
    [FORWARDED_HOST, 'host'],
    [requestId, 'requestId'],
    [secretHeader, 'secret'],
  ]);
  const judge = (written: string): JudgedName => {
    const name = written.toLowerCase();
    return { written, name, meaning: meanings.get(name), forgery: forgeryOf(name, forgeries) };
  };
  const usual = [...meanings.keys(), ...forgeries.ours].flatMap((name) => (name === undefined ? [] : spellings(name)));
  const known = new Map([...INBOUND.keys(), ...usual].map((written) => [written, judge(written)]));
  // A proxy writes its headers in one order: at each place most often stands what stood there before.
  const before: (JudgedName | undefined)[] = [];
  const judgedAt = (place: number, written: string): JudgedName => {
    const same = before[place];
    if (same?.written === written) return same;
    const judged = known.get(written) ?? judge(written);
    if (place < PLACES) before[place] = judged;
    return judged;
  };
  return (raw) => {
    const values = noValues();
    let forged: string | undefined;
    let override: string | undefined;
    for (let i = 0; i + 1 < raw.length; i += 2) {
      const { name, meaning, forgery } = judgedAt(i / 2, raw[i] ?? '');
      if (meaning !== undefined) values[meaning] = values[meaning] === undefined ? (raw[i + 1] ?? '') : DOUBLE;
      if (forgery === 'forged') forged ??= name;
      else if (forgery === 'override') override ??= name;
    }
    return { values, forged, override };
  };
}

function noValues(): AskedValues {
  return {
    method: undefined,
    target: undefined,
    url: undefined,
    host: undefined,
    requestId: undefined,
    secret: undefined,
  };
}
