// One line per event on standard output: JSON with ts (RFC 3339, UTC), level, msg, then fields, or what a renderer makes of
// the same. Values of fields whose name says that they are secret are replaced, wherever they come from: a log must never be
// where a credential leaks.

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFields = Readonly<Record<string, unknown>>;
export type Log = {
  readonly [level in LogLevel]: (msg: string, fields?: LogFields) => void;
} & { readonly enabled: (level: LogLevel) => boolean };

/** One event as text: `fields` in their order, secrets replaced. */
export type LogEntry = {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly level: LogLevel;
  readonly msg: string;
  readonly fields: ReadonlyMap<string, string>;
};
/** The line, its end included. */
export type RenderLog = (entry: LogEntry) => string;

const ORDER: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];
const SECRET =
  /^(authorization|cookie|set-cookie|secret|secrets|token|key|api_?key|password|jwt|credential|payment-signature|x-payment)$/i;

const HIDDEN = '[redacted]';

/**
 * `level` as a function if it may change while the program runs. `write` is told whether a line is to leave at once:
 * warnings and errors are. `render`, asked at each line, is for people; undefined: JSON.
 */
export function createLog(
  level: LogLevel | (() => LogLevel),
  write: (line: string, atOnce: boolean) => void,
  now: () => number,
  render: () => RenderLog | undefined = () => undefined,
): Log {
  const threshold = typeof level === 'function' ? level : (): LogLevel => level;
  const enabled = (wanted: LogLevel): boolean => ORDER.indexOf(wanted) >= ORDER.indexOf(threshold());
  const at =
    (wanted: LogLevel) =>
    (msg: string, fields: LogFields = {}): void => {
      if (!enabled(wanted)) return;
      const atOnce = wanted === 'warn' || wanted === 'error';
      const forPeople = render();
      if (forPeople !== undefined) {
        write(forPeople({ at: now(), level: wanted, msg, fields: textsOf(fields) }), atOnce);
        return;
      }
      let line = `{"ts":"${new Date(now()).toISOString()}","level":"${wanted}","msg":${JSON.stringify(msg)}`;
      for (const name of Object.keys(fields)) line += memberOf(name, fields[name]);
      write(`${line}}\n`, atOnce);
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), enabled };
}

function textsOf(fields: LogFields): Map<string, string> {
  const texts = new Map<string, string>();
  for (const [name, value] of Object.entries(fields)) {
    const known = redact(name, value);
    const text = typeof known === 'string' ? known : JSON.stringify(known, redact);
    if (text !== undefined) texts.set(name, text);
  }
  return texts;
}

/** A field as the end of the line so far. Most are words and numbers, which need no look inside. */
function memberOf(name: string, value: unknown): string {
  if (value === undefined) return '';
  const text =
    typeof value === 'string' && !SECRET.test(name)
      ? JSON.stringify(value)
      : JSON.stringify(redact(name, value), redact);
  return text === undefined ? '' : `,${JSON.stringify(name)}:${text}`;
}

function redact(name: string, value: unknown): unknown {
  if (SECRET.test(name) && value !== undefined && value !== null) return HIDDEN;
  if (value instanceof Error) return value.message;
  return typeof value === 'bigint' ? value.toString() : value;
}
