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

/** `level` as a function where it may change while the program runs. */
export function createLog(level: LogLevel | (() => LogLevel), write: (line: string) => void, now: () => number): Log {
  const threshold = typeof level === 'function' ? level : (): LogLevel => level;
  const enabled = (wanted: LogLevel): boolean => ORDER.indexOf(wanted) >= ORDER.indexOf(threshold());
  const at =
    (wanted: LogLevel) =>
    (msg: string, fields: LogFields = {}): void => {
      if (!enabled(wanted)) return;
      write(`${JSON.stringify({ ts: new Date(now()).toISOString(), level: wanted, msg, ...fields }, redact)}\n`);
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), enabled };
}

function redact(name: string, value: unknown): unknown {
  if (SECRET.test(name) && value !== undefined && value !== null) return '[redacted]';
  if (value instanceof Error) return value.message;
  return typeof value === 'bigint' ? value.toString() : value;
}
