// Writes one line per event on standard output: JSON with ts (RFC 3339, UTC), level, msg, then fields, or what a
// renderer makes of the same. Values of fields whose name says that they are secret are replaced, wherever they come
// from: a log must never be where a credential leaks. If several processes write to one place, values are cut so that a
// line leaves in one write.

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFields = Readonly<Record<string, unknown>>;
export type Log = {
  readonly [level in LogLevel]: (msg: string, fields?: LogFields) => void;
} & { readonly enabled: (level: LogLevel) => boolean };

/** Event before it is text: `fields` in their order, secrets replaced. */
export type LogEntry = {
  /** Time in milliseconds since the epoch. */
  readonly at: number;
  readonly level: LogLevel;
  readonly msg: string;
  readonly fields: ReadonlyMap<string, string>;
};
/** The line, its end included. */
export type LogRenderer = (entry: LogEntry) => string;

const ORDER: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];
const SECRET =
  /^(authorization|cookie|set-cookie|secret|secrets|token|key|api_?key|password|jwt|credential|payment-signature|x-payment)$/i;

const HIDDEN = '[redacted]';

/** Length of a line in bytes, if other processes write to the same place. */
const MOST_BYTES = 4_000;
/** Lengths that values are cut to: the first of these that is enough. */
const CUTS: readonly number[] = [2048, 1024, 512, 256, 128, 64, 32, 16, 8];

/**
 * Makes a log. `level` is a function if it may change while the program runs. `write` is told whether a line is to
 * leave at once: warnings and errors are. `render`, asked at each line, is for people; undefined: JSON. `worker` says
 * which of several processes this is, a field of each line; undefined: the only one.
 */
export function createLog(
  level: LogLevel | (() => LogLevel),
  write: (line: string, atOnce: boolean) => void,
  now: () => number,
  render: () => LogRenderer | undefined = () => undefined,
  worker?: number,
): Log {
  const threshold = typeof level === 'function' ? level : (): LogLevel => level;
  const enabled = (wanted: LogLevel): boolean => ORDER.indexOf(wanted) >= ORDER.indexOf(threshold());
  const at =
    (wanted: LogLevel) =>
    (msg: string, fields: LogFields = {}): void => {
      if (!enabled(wanted)) return;
      const atOnce = wanted === 'warn' || wanted === 'error';
      const forPeople = render();
      const event: Event = {
        at: now(),
        level: wanted,
        msg,
        fields: worker === undefined ? fields : { worker, ...fields },
      };
      const lineOf = forPeople === undefined ? jsonOf : (told: Event, most?: number) => forPeople(entryOf(told, most));
      write(worker === undefined ? lineOf(event) : fitted(event, lineOf), atOnce);
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), enabled };
}

type Event = Omit<LogEntry, 'fields'> & { readonly fields: LogFields };

/** Makes the line of `event` by `lineOf`, with values as long as the line may be. */
function fitted(event: Event, lineOf: (event: Event, most?: number) => string): string {
  const whole = lineOf(event);
  if (whole.length * 3 <= MOST_BYTES || Buffer.byteLength(whole) <= MOST_BYTES) return whole;
  for (const most of CUTS) {
    const line = lineOf(event, most);
    if (Buffer.byteLength(line) <= MOST_BYTES) return line;
  }
  return lineOf({ ...event, fields: { worker: event.fields['worker'] } }, CUTS.at(-1));
}

function entryOf({ fields, ...event }: Event, most?: number): LogEntry {
  const texts = new Map<string, string>();
  for (const [name, value] of Object.entries(fields)) {
    const known = redact(name, value);
    const text = typeof known === 'string' ? known : JSON.stringify(known, redact);
    if (text !== undefined) texts.set(name, cutTo(text, most));
  }
  return { ...event, msg: cutTo(event.msg, most), fields: texts };
}

function jsonOf({ at, level, msg, fields }: Event, most?: number): string {
  let line = `{"ts":"${new Date(at).toISOString()}","level":"${level}","msg":${JSON.stringify(cutTo(msg, most))}`;
  for (const name of Object.keys(fields)) line += memberOf(name, fields[name], most);
  return `${line}}\n`;
}

/** A field as the end of the line so far. Most are words and numbers, which need no look inside. */
function memberOf(name: string, value: unknown, most?: number): string {
  if (value === undefined) return '';
  if (typeof value === 'string' && !SECRET.test(name))
    return `,${JSON.stringify(name)}:${JSON.stringify(cutTo(value, most))}`;
  const text = JSON.stringify(redact(name, value), redact);
  if (text === undefined) return '';
  // A value that was cut becomes a text.
  const written = most === undefined || text.length <= most + 2 ? text : JSON.stringify(cutTo(text, most));
  return `,${JSON.stringify(name)}:${written}`;
}

function cutTo(text: string, most = Infinity): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}

function redact(name: string, value: unknown): unknown {
  if (SECRET.test(name) && value !== undefined && value !== null) return HIDDEN;
  if (value instanceof Error) return value.message;
  return typeof value === 'bigint' ? value.toString() : value;
}
