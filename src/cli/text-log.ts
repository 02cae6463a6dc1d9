// A log line for people: time, what happened, to whom. Requests and charges read as sentences, everything else as its
// message and its fields. No value can end its line, move the cursor or turn the text around.
import type { LogEntry, LogLevel, LogRenderer } from '../host/log.ts';
import { shortId } from '../domain/payment/quote.ts';
import type { Io } from './command.ts';

type Fields = LogEntry['fields'];
type Paint = (color: keyof typeof CODES, text: string) => string;

const CODES = { dim: '2', red: '31', green: '32', yellow: '33', cyan: '36' } as const;
const LEVELS = { debug: 'dim', info: 'cyan', warn: 'yellow', error: 'red' } as const satisfies Record<
  LogLevel,
  keyof typeof CODES
>;

/** Control characters, line ends of Unicode, and what changes the direction of text. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** https://no-color.org */
export function takesColors({ terminal, env }: Pick<Io, 'terminal' | 'env'>): boolean {
  return terminal.shown && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
}

export function createTextLog(colors: boolean): LogRenderer {
  const paint: Paint = colors ? (color, text) => `\u001b[${CODES[color]}m${text}\u001b[0m` : (_color, text) => text;
  return ({ at, level, msg, fields }) => `${paint('dim', timeOf(at))}  ${describe(level, msg, fields, paint)}\n`;
}

function describe(level: LogLevel, msg: string, fields: Fields, paint: Paint): string {
  if (msg === 'request' && level === 'info') return describeRequest(fields, paint);
  const charged = /^charge(?: (\w+))?$/.exec(msg);
  if (charged !== null && fields.has('charge_id')) {
    const state = fields.get('state') ?? charged[1];
    if (state !== undefined) return describeCharge(level, state, fields, paint);
  }
  if (msg === 'listening') return describeListener(fields, paint);
  const rest = [...fields].map(([name, value]) => `${paint('dim', `${safe(name)}=`)}${quoted(value)}`);
  return [...mark(level, paint), safe(msg), ...rest].join('  ');
}

function describeRequest(fields: Fields, paint: Paint): string {
  const read = reader(fields);
  const status = read('status');
  const [outcome, reason] = [read('outcome'), read('reason')];
  const price = priceOf(fields);
  const payer = fields.get('payer');
  const customer = fields.get('customer_id');
  const what = [
    outcome.replaceAll('_', ' ') + (reason === '' || reason === outcome ? '' : ` (${reason})`),
    price,
    payer === undefined ? '' : `by ${shortAddress(safe(payer))}`,
    customer === undefined ? '' : `customer ${quoted(customer)}`,
  ];
  const words = what.filter((word) => word !== '').join(' ');
  const took = fields.has('duration_ms') ? `${Number(read('duration_ms')).toFixed(1)} ms` : '';
  const color = status.startsWith('5') ? 'red' : /^[12]/.test(status) ? 'green' : 'yellow';
  return [
    paint(color, status.padStart(3)),
    `${read('method')} ${read('path')}`,
    words,
    took,
    paint('dim', `request ${read('request_id')}`),
  ]
    .filter((word) => word !== '')
    .join('  ');
}

function describeCharge(level: LogLevel, state: string, fields: Fields, paint: Paint): string {
  const read = reader(fields);
  const [payer, network, transaction, reason, request] = [
    'payer',
    'network',
    'transaction',
    'reason',
    'request_id',
  ].map((name) => read(name));
  return [
    ...mark(level, paint),
    paint(state === 'settled' ? 'green' : 'cyan', safe(state)),
    [priceOf(fields), payer ? `from ${shortAddress(payer)}` : '', network ? `on ${network}` : '']
      .filter((word) => word !== '')
      .join(' '),
    reason ? `(${reason})` : '',
    `charge ${shortId(read('charge_id'))}`,
    transaction ? `transaction ${transaction}` : '',
    request ? paint('dim', `request ${request}`) : '',
  ]
    .filter((word) => word !== '')
    .join('  ');
}

function describeListener(fields: Fields, paint: Paint): string {
  const read = reader(fields);
  const address = read('address');
  const host = address.includes(':') ? `[${address}]` : address;
  return `${paint('cyan', 'listening')}  ${read('listener')}  http://${host}:${read('port')}`;
}

/** Returns the mark of a level; ordinary levels have none. */
function mark(level: LogLevel, paint: Paint): string[] {
  return level === 'info' ? [] : [paint(LEVELS[level], level === 'warn' ? 'warning' : level)];
}

function priceOf(fields: Fields): string {
  const amount = fields.get('amount');
  return amount === undefined ? '' : [amount, fields.get('currency') ?? ''].map(safe).join(' ').trim();
}

function reader(fields: Fields): (name: string) => string {
  return (name) => safe(fields.get(name) ?? '');
}

function shortAddress(address: string): string {
  return address.length > 20 ? `${address.slice(0, 6)}..${address.slice(-4)}` : address;
}

/** Local time, as on the clock of the person who reads it. */
function timeOf(at: number): string {
  const date = new Date(at);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');
}

function quoted(value: string): string {
  return value === '' || /\s/.test(value) ? safe(JSON.stringify(value)) : safe(value);
}

function safe(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
