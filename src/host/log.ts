// One JSON line per event on standard output: ts (RFC 3339, UTC), level, msg, then fields. Values of fields whose name
// says that they are secret are replaced, whoever passed them: a log must never be where a credential leaks.

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFields = Readonly<Record<string, unknown>>;
export type Log = {
  readonly [level in LogLevel]: (msg: string, fields?: LogFields) => void;
} & { readonly enabled: (level: LogLevel) => boolean };

const ORDER: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];
const SECRET =
  /^(authorization|cookie|set-cookie|secret|secrets|token|key|api_?key|password|jwt|credential|payment-signature|x-payment)$/i;

const HIDDEN = '[redacted]';
const REDACTED = JSON.stringify(HIDDEN);

/**
 * `level` as a function where it may change while the program runs. `write` is told whether a line is to leave at once:
 * warnings and errors are.
 */
export function createLog(
  level: LogLevel | (() => LogLevel),
  write: (line: string, atOnce: boolean) => void,
  now: () => number,
): Log {
  const threshold = typeof level === 'function' ? level : (): LogLevel => level;
  const enabled = (wanted: LogLevel): boolean => ORDER.indexOf(wanted) >= ORDER.indexOf(threshold());
  const at =
    (wanted: LogLevel) =>
    (msg: string, fields: LogFields = {}): void => {
      if (!enabled(wanted)) return;
      let line = `{"ts":"${new Date(now()).toISOString()}","level":"${wanted}","msg":${JSON.stringify(msg)}`;
      for (const name of Object.keys(fields)) line += memberOf(name, fields[name]);
      write(`${line}}\n`, wanted === 'warn' || wanted === 'error');
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), enabled };
}

type Name = { readonly start: string; readonly secret: boolean };

/** Names of fields that were written before; whoever makes them up does not fill the memory. */
const names = new Map<string, Name>();
const MAX_NAMES = 256;

function nameOf(name: string): Name {
  let known = names.get(name);
  if (known === undefined) {
    known = { start: `,${JSON.stringify(name)}:`, secret: SECRET.test(name) };
    if (names.size < MAX_NAMES) names.set(name, known);
  }
  return known;
}

/** A field as the end of the line so far. Most are words and numbers, which need no look inside. */
function memberOf(name: string, value: unknown): string {
  if (value === undefined) return '';
  const { start, secret } = nameOf(name);
  if (typeof value === 'string') return start + (secret ? REDACTED : JSON.stringify(value));
  const text = JSON.stringify(redact(name, value), redact);
  return text === undefined ? '' : start + text;
}

function redact(name: string, value: unknown): unknown {
  if (SECRET.test(name) && value !== undefined && value !== null) return HIDDEN;
  if (value instanceof Error) return value.message;
  return typeof value === 'bigint' ? value.toString() : value;
}
