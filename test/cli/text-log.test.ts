// Lines for people: what a request and a charge read like, and that no value can forge a line or move the cursor.
import { describe, expect, test } from 'vitest';
import { createTextLog } from '../../src/cli/text-log.ts';
import { createLog, type LogFields, type LogLevel } from '../../src/host/log.ts';

const NOW = new Date(2026, 10, 22, 9, 8, 7).getTime();

function lineOf(level: LogLevel, msg: string, fields: LogFields = {}, colors = false): string {
  let written = '';
  const render = createTextLog(colors);
  createLog(
    'debug',
    (line) => (written += line),
    () => NOW,
    () => render,
  )[level](msg, fields);
  return written;
}

const REQUEST = {
  request_id: 'r-1',
  trace_id: undefined,
  method: 'GET',
  path: '/reports/q3',
  status: 200,
  outcome: 'free',
  reason: undefined,
  duration_ms: 1.234,
  client_ip: '127.0.0.1',
};
const PAYER = '0x209693bc6afc0c5328ba36faf03c514ef312287c';
const TRANSACTION = `0x${'ab'.repeat(32)}`;

describe('a request', () => {
  test.each<[string, LogFields, string]>([
    ['free', {}, '200  GET /reports/q3  free  1.2 ms'],
    [
      'unpaid',
      { status: 402, outcome: 'payment_required', reason: 'payment_required', amount: '0.10', currency: 'USD' },
      '402  GET /reports/q3  payment required 0.10 USD  1.2 ms',
    ],
    [
      'paid',
      { outcome: 'paid', amount: '0.10', currency: 'USD', payer: PAYER, customer_id: 'a b' },
      '200  GET /reports/q3  paid 0.10 USD by 0x2096..287c customer "a b"  1.2 ms',
    ],
    [
      'refused',
      { status: 400, outcome: 'refused', reason: 'target_ambiguous', path: '/a/%2e%2e/b' },
      '400  GET /a/%2e%2e/b  refused (target_ambiguous)  1.2 ms',
    ],
  ])('behaviour: a request that is %s is one line', (_name, fields, expected) => {
    expect(lineOf('info', 'request', { ...REQUEST, ...fields })).toBe(`09:08:07  ${expected}  request r-1\n`);
  });
});

describe('a charge', () => {
  const charge = {
    charge_id: `chg_${'A'.repeat(100)}0123456789ab`,
    state: 'settled',
    payer: PAYER,
    amount: '0.10',
    currency: 'USD',
    network: 'eip155:8453',
    transaction: TRANSACTION,
  };
  const told = `0.10 USD from 0x2096..287c on eip155:8453  charge chg_...0123456789ab  transaction ${TRANSACTION}`;

  test('behaviour: the line of a charge says where the money went, the transaction whole', () => {
    expect(lineOf('info', 'charge', charge)).toBe(`09:08:07  settled  ${told}\n`);
    expect(lineOf('info', 'charge settled', { ...charge, state: undefined, request_id: 'r-1' })).toBe(
      `09:08:07  settled  ${told}  request r-1\n`,
    );
  });

  test('behaviour: the line of a failed charge says why no money went', () => {
    const fields = { ...charge, state: 'failed', reason: 'expired unused', transaction: undefined };
    expect(lineOf('warn', 'charge', fields)).toBe(
      '09:08:07  warning  failed  0.10 USD from 0x2096..287c on eip155:8453  (expired unused)  charge chg_...0123456789ab\n',
    );
  });
});

describe('anything else', () => {
  test.each<[LogLevel, string, LogFields, string]>([
    ['info', 'listening', { listener: 'proxy', address: '::1', port: 8402 }, 'listening  proxy  http://[::1]:8402'],
    ['info', 'draining', { delay_ms: 0, up_to_ms: 25 }, 'draining  delay_ms=0  up_to_ms=25'],
    [
      'warn',
      'odd',
      { list: ['a', 1n], why: 'two words', none: undefined },
      'warning  odd  list=["a","1"]  why="two words"',
    ],
    ['error', 'broken', { error: new Error('why not') }, 'error  broken  error="why not"'],
    [
      'info',
      'told',
      { token: 'canary-secret', deep: { api_key: 'canary' } },
      'told  token=[redacted]  deep={"api_key":"[redacted]"}',
    ],
  ])('behaviour: %s %s', (level, msg, fields, expected) => {
    expect(lineOf(level, msg, fields)).toBe(`09:08:07  ${expected}\n`);
  });

  test.each(['\n12:00:00  200  forged', '\r\u001b[2K', '\u009b31m', '\u2028', '\u202egpj.exe', '\u0000'])(
    'attack: %j can neither end a line, move the cursor nor turn the text',
    (value) => {
      for (const line of [
        lineOf('info', 'request', { ...REQUEST, path: value, reason: value, customer_id: value }),
        lineOf('info', 'charge', {
          charge_id: 'chg_1',
          state: 'settled',
          reason: value,
          payer: value,
          transaction: value,
        }),
        lineOf('info', 'other', { [`n${value}`]: value, value }),
        lineOf('info', value),
      ])
        expect(line).toMatch(/^[\x20-\x7e]+\n$/);
    },
  );

  test('behaviour: the text log has colours only if they are asked for', () => {
    expect(lineOf('error', 'request', REQUEST)).not.toContain('\u001b');
    expect(lineOf('info', 'request', { ...REQUEST, status: 500 }, true)).toContain('\u001b[31m500\u001b[0m');
  });
});
