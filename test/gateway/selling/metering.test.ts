// What a metered request takes, over real sockets: the amount that a response says in its head, in a trailer or in its body, and
// what is taken if it never says one. The client has all of the response as it comes, and nothing of the amount.
import { gzipSync } from 'node:zlib';
import { expect, test, describe } from 'vitest';
import { parsePrice } from '../../../src/domain/payment/money.ts';
import type { Meter } from '../../../src/domain/selling/meter/meter.ts';
import type { SeenResponseHead } from '../../../src/gateway/outcome.ts';
import { createMetering } from '../../../src/gateway/selling/metering.ts';
import { createLog, type LogFields } from '../../../src/host/log.ts';
import type { RawClient } from '../../support/raw-client.ts';
import type { Script } from '../../support/raw-upstream.ts';
import { createStages, GET, outcomeOf } from '../../support/stages.ts';

const { stage } = createStages();

const price = (amount: string): NonNullable<ReturnType<typeof parsePrice>> => {
  const parsed = parsePrice(amount);
  if (parsed === undefined) throw new Error(`${amount} is no price`);
  return parsed;
};
/** A price of 0.05 in an asset of six decimals. */
const PRICE = '0.05';
const LIMIT = { price: price(PRICE), decimals: 6 };
const REQUEST = { routeId: 'route-1', planId: 'tokens', requestId: 'req-1' };

const header: Meter = { source: { kind: 'header' }, missing: 'max' };
const trailer: Meter = { source: { kind: 'trailer' }, missing: 'max' };
const usage: Meter = {
  source: { kind: 'usage', path: ['usage', 'total_tokens'], unit: price('0.000002'), tailBytes: 1024 },
  missing: 'max',
};
const zero = (meter: Meter): Meter => ({ ...meter, missing: 'zero' });

type Taken = {
  /** Money that is taken. */
  readonly taken: string;
  readonly at: 'head' | 'end';
  readonly results: readonly string[];
  readonly lines: readonly LogFields[];
  readonly client: RawClient;
};

/** Sends a request under a meter; `leave`: what the client does instead of reading to the end. */
async function meter(by: Meter, script: Script, leave?: (client: RawClient) => Promise<void>): Promise<Taken> {
  const results: string[] = [];
  const lines: LogFields[] = [];
  const log = createLog(
    'info',
    (line) => void lines.push(JSON.parse(line) as LogFields),
    () => 0,
  );
  const metering = createMetering({ metrics: { meter: (result) => void results.push(result) }, log });
  const use = metering(by, REQUEST);
  let atHead: bigint | undefined;
  const heard = (head: SeenResponseHead): bigint | undefined => (use.head(head) ? use.amount(LIMIT) : undefined);
  const { client: open, gateway } = await stage(script, {
    hearer: use.hearer,
    beforeResponse: (head) => {
      atHead = heard(head);
      return { kind: 'stream', headers: [] };
    },
  });
  const client = await open();
  client.send(GET);
  if (leave === undefined) await client.answer().catch(() => undefined);
  else await leave(client);
  const end = await outcomeOf(gateway);
  const amount = atHead ?? use.amount(LIMIT, end);
  const whole = amount / 10n ** 18n;
  const fraction = String(amount % 10n ** 18n)
    .padStart(18, '0')
    .replace(/0+$/, '');
  return {
    taken: fraction === '' ? `${whole}` : `${whole}.${fraction}`,
    at: atHead === undefined ? 'end' : 'head',
    results,
    lines,
    client,
  };
}

const says =
  (...texts: (string | Buffer)[]): Script =>
  (_, socket) => {
    for (const text of texts) socket.write(text);
  };
const withLength = (head: string, body: string | Buffer): (string | Buffer)[] => [
  `HTTP/1.1 200 OK\r\n${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`,
  body,
];
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n';
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const JSON_HEAD = 'Content-Type: application/json\r\n';
const EVENTS = `${CHUNKED}Content-Type: text/event-stream\r\n\r\n`;
const tokens = (count: number): string =>
  JSON.stringify({ choices: ['"usage":{"total_tokens":0}'], usage: { total_tokens: count } });

describe('what a response says is taken', () => {
  test.each<[string, Meter, Script, string, 'head' | 'end', string]>([
    ['a header', header, says(...withLength('Tollgate-Charge-Amount: 0.0123\r\n', 'ok')), '0.0123', 'head', 'metered'],
    ['a header of 0', header, says(...withLength('tollgate-charge-amount: 0\r\n', 'ok')), '0', 'head', 'metered'],
    [
      'a header over the price',
      header,
      says(...withLength('Tollgate-Charge-Amount: 7\r\n', 'ok')),
      PRICE,
      'head',
      'over',
    ],
    ['no header', header, says(...withLength('', 'ok')), PRICE, 'head', 'missing'],
    ['no header, for nothing', zero(header), says(...withLength('', 'ok')), '0', 'head', 'missing'],
    [
      'two headers',
      zero(header),
      says(...withLength('Tollgate-Charge-Amount: 0.01\r\nTollgate-Charge-Amount: 0.01\r\n', 'ok')),
      ...(['0', 'head', 'missing'] as const),
    ],
    [
      'a trailer',
      trailer,
      says(`${CHUNKED}\r\n`, chunk('ok'), '0\r\nTollgate-Charge-Amount: 0.04\r\n\r\n'),
      ...(['0.04', 'end', 'metered'] as const),
    ],
    [
      'a header in place of a trailer',
      trailer,
      says(`${CHUNKED}Tollgate-Charge-Amount: 0.01\r\n\r\n`, chunk('ok'), '0\r\n\r\n'),
      ...([PRICE, 'end', 'missing'] as const),
    ],
    [
      'two trailers',
      trailer,
      says(`${CHUNKED}\r\n`, '0\r\nTollgate-Charge-Amount: 0\r\nTOLLGATE-CHARGE-AMOUNT: 0\r\n\r\n'),
      ...([PRICE, 'end', 'missing'] as const),
    ],
    ['usage in JSON', usage, says(...withLength(JSON_HEAD, tokens(1234))), '0.002468', 'end', 'metered'],
    ['usage of 0', usage, says(...withLength(JSON_HEAD, tokens(0))), '0', 'end', 'metered'],
    ['usage over the price', usage, says(...withLength(JSON_HEAD, tokens(25_001))), PRICE, 'end', 'over'],
    ['usage in no JSON', usage, says(...withLength('Content-Type: text/html\r\n', tokens(1))), PRICE, 'end', 'missing'],
    [
      'compressed usage',
      usage,
      says(...withLength(`${JSON_HEAD}Content-Encoding: gzip\r\n`, gzipSync(tokens(1)))),
      ...([PRICE, 'end', 'missing'] as const),
    ],
    [
      'usage in a stream of events',
      usage,
      says(
        EVENTS,
        chunk('data: {"usage":null}\n\ndata: {"usa'),
        chunk(`ge":{"total_tokens":900}}\r\n\r`),
        chunk('\ndata: [DONE]\n\n'),
        '0\r\n\r\n',
      ),
      ...(['0.0018', 'end', 'metered'] as const),
    ],
    [
      'a stream whose text prints usage',
      usage,
      says(
        EVENTS,
        chunk(`data: ${tokens(900)}\n\n`),
        chunk(`data: ${JSON.stringify({ text: '\n\ndata: {"usage":{"total_tokens":0}}\n\n' })}\n\n`),
        '0\r\n\r\n',
      ),
      ...(['0.0018', 'end', 'metered'] as const),
    ],
  ])('behaviour: %s', async (_name, by, script, taken, at, result) => {
    const seen = await meter(by, script);
    expect(seen).toMatchObject({ taken, at, results: [result] });
    expect(seen.client.received()).toMatch(/^HTTP\/1\.1 200/);
    expect(seen.client.received()).not.toMatch(/charge-amount/i);
    const warned = { level: 'warn', request_id: 'req-1', route_id: 'route-1', plan: 'tokens' };
    expect(seen.lines).toEqual(result === 'metered' ? [] : [expect.objectContaining(warned)]);
  });
});

describe('a response that does not end whole', () => {
  test.each([
    ['the price', usage, PRICE],
    ['nothing', zero(usage), '0'],
  ])('behaviour: takes %s if its client leaves in the middle, as the plan says', async (_name, by, taken) => {
    const script = says(EVENTS, chunk(`data: ${tokens(1)}\n\n`));
    const seen = await meter(by, script, async (client) => {
      await client.until('total_tokens');
      client.close();
    });
    expect(seen).toMatchObject({ taken, results: ['missing'] });
    expect(seen.lines).toMatchObject([{ because: 'client_left', taken: by.missing }]);
  });

  test.each([
    ['the price', trailer, PRICE],
    ['nothing', zero(trailer), '0'],
  ])('behaviour: takes %s if the upstream breaks off in the middle, as the plan says', async (_name, by, taken) => {
    const seen = await meter(by, (_, socket) => {
      socket.write(`${CHUNKED}\r\n${chunk('half')}`, () => socket.destroy());
    });
    expect(seen).toMatchObject({ taken, results: ['missing'] });
    expect(seen.lines.find(({ because }) => because === 'absent')).toBeDefined();
  });

  test('behaviour: what the head said stands, whatever becomes of the body', async () => {
    const seen = await meter(
      header,
      says(`${CHUNKED}Tollgate-Charge-Amount: 0.01\r\n\r\n${chunk('half')}`),
      async (client) => {
        await client.until('half');
        client.close();
      },
    );
    expect(seen).toMatchObject({ taken: '0.01', at: 'head', results: ['metered'] });
  });
});
