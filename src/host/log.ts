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

export function createLog(level: LogLevel, write: (line: string) => void, now: () => number): Log {
  const threshold = ORDER.indexOf(level);
  const enabled = (wanted: LogLevel): boolean => ORDER.indexOf(wanted) >= threshold;
  const at = (wanted: LogLevel) =>
    enabled(wanted)
      ? (msg: string, fields: LogFields = {}): void =>
          write(`${JSON.stringify({ ts: new Date(now()).toISOString(), level: wanted, msg, ...fields }, redact)}\n`)
      : (): void => undefined;
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), enabled };
}

function redact(name: string, value: unknown): unknown {
  if (SECRET.test(name) && value !== undefined && value !== null) return '[redacted]';
  if (value instanceof Error) return value.message;
  return typeof value === 'bigint' ? value.toString() : value;
}
