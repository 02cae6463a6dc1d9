// What is heard of a response beside the client: its body and its trailers, without anything being held back. And what an
// upstream says about its own price, which is between it and us.
import { describe, expect, it } from 'vitest';
import type { ResponseHearer } from '../../src/gateway/outcome.ts';
import { headerOf } from '../support/raw-client.ts';
import type { Script } from '../support/raw-upstream.ts';
import { createStages, GET, head, outcomeOf } from '../support/stages.ts';

const { stage } = createStages();

type Heard = { readonly hearer: ResponseHearer; readonly body: () => string; readonly ends: (readonly string[])[] };

function listen(needs: ResponseHearer['needs'] = 'nothing'): Heard {
  let body = '';
  const ends: (readonly string[])[] = [];
  const data = (chunk: Buffer): void => void (body += chunk.toString('latin1'));
  return { hearer: { needs, data, end: (trailers) => void ends.push(trailers) }, body: () => body, ends };
}

const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n';
const writes =
  (...texts: string[]): Script =>
  (_, socket) => {
    for (const text of texts) socket.write(text);
  };

const SPELLINGS = [
  'Tollgate-Charge-Amount',
  'tollgate-charge-amount',
  'Tollgate_Charge_Amount',
  'TOLLGATE.CHARGE.AMOUNT',
];
const SAID = SPELLINGS.map((name) => `${name}: 0.0123\r\n`).join('');

describe('an amount that an upstream names', () => {
  it.each([
    ['a request that costs nothing', {}],
    ['a request that is paid', { keepBytes: 1000 }],
    ['a request whose response is heard', { hearer: listen('trailers').hearer }],
  ])(
    'attack: no spelling of Tollgate-Charge-Amount reaches the client of %s, as a header or as a trailer',
    async (_name, options) => {
      const script = writes(
        `${CHUNKED}Trailer: Tollgate-Charge-Amount\r\n${SAID}\r\n2\r\nok\r\n0\r\n${SAID}X-Sum: 1\r\n\r\n`,
      );
      const { client } = await stage(script, options);
      const one = await client();
      one.send(GET);
      expect((await one.answer()).body.toString()).toBe('ok');
      expect(one.received()).not.toMatch(/amount|0\.0123|x-sum/i);
    },
  );

  it('attack: it reaches nobody with early hints, an error, a response to HEAD or a 304', async () => {
    for (const [method, status] of [
      ['GET', '500 Internal'],
      ['HEAD', '200 OK'],
      ['GET', '304 Not Modified'],
    ] as const) {
      const hints = `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n${SAID}\r\n`;
      const { client } = await stage(writes(hints, `HTTP/1.1 ${status}\r\nContent-Length: 0\r\n${SAID}\r\n`));
      const one = await client();
      one.send(head(method, 'Connection: close'));
      await one.closed;
      expect(one.received()).toContain(status);
      expect(one.received()).not.toMatch(/0\.0123/);
    }
  });
});

describe('a response that is heard', () => {
  it('behaviour: its body and trailers are heard once and whole, and the client gets the body as it comes', async () => {
    const { hearer, body, ends } = listen();
    let rest: () => void = () => undefined;
    const { client } = await stage(
      (_, socket) => {
        socket.write(`${CHUNKED}\r\n5\r\nfirst\r\n`);
        rest = () => void socket.write('4\r\nlast\r\n0\r\nTollgate-Charge-Amount:\t0.5 \r\nX-T:\r\n\r\n');
      },
      { hearer },
    );
    const one = await client();
    one.send(GET);
    // Nothing more comes from the upstream before the client has the beginning.
    await one.until('first');
    expect([body(), ends]).toEqual(['first', []]);
    rest();
    expect((await one.answer()).body.toString()).toBe('firstlast');
    expect([body(), ends]).toEqual(['firstlast', [['Tollgate-Charge-Amount', '0.5', 'X-T', '']]]);
  });

  it.each([
    ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 'ok'],
    ['no body', 'HTTP/1.1 204 No Content\r\n\r\n', ''],
    [
      'a body of several reads',
      `HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n${'x'.repeat(300_000)}`,
      'x'.repeat(300_000),
    ],
  ])('behaviour: the end of a response with %s is heard once', async (_name, text, expected) => {
    const { hearer, body, ends } = listen();
    const { client, gateway } = await stage(writes(text), { hearer });
    const one = await client();
    one.send(GET);
    await one.answer();
    expect((await outcomeOf(gateway)).kind).toBe('delivered');
    expect([body() === expected, ends]).toEqual([true, [[]]]);
  });

  it('behaviour: the end is heard once also if the response was held meanwhile', async () => {
    const { hearer, ends } = listen();
    const { client, gateway } = await stage(writes('HTTP/1.1 204 No Content\r\n\r\n'), {
      hearer,
      beforeResponse: () =>
        new Promise((resolve) => setImmediate(() => setImmediate(resolve, { kind: 'stream', headers: [] }))),
    });
    const one = await client();
    one.send(GET);
    await one.answer();
    expect((await outcomeOf(gateway)).kind).toBe('delivered');
    expect(ends).toEqual([[]]);
  });

  it('behaviour: a response that breaks off has no end', async () => {
    const { hearer, body, ends } = listen();
    const { client, gateway } = await stage(
      (_, socket) => {
        socket.write(`${CHUNKED}\r\n4\r\nhalf\r\n`, () => socket.destroy());
      },
      { hearer },
    );
    (await client()).send(GET);
    expect((await outcomeOf(gateway)).kind).toBe('failed');
    expect([body(), ends]).toEqual(['half', []]);
  });

  it('behaviour: a response whose client leaves has no end', async () => {
    const { hearer, ends } = listen();
    const { client, gateway } = await stage(writes(`${CHUNKED}\r\n4\r\nhalf\r\n`), { hearer });
    const one = await client();
    one.send(GET);
    await one.until('half');
    one.close();
    expect((await outcomeOf(gateway)).kind).toBe('client_gone');
    expect(ends).toEqual([]);
  });
});

describe('what the upstream is asked for', () => {
  const ASKED = [
    'Accept-Encoding: gzip',
    'accept-encoding: br',
    'Range: bytes=0-1',
    'If-None-Match: "a"',
    'If-Match: "b"',
    'TE: trailers',
  ];
  const NAMES = ['accept-encoding', 'range', 'if-none-match', 'if-match', 'te', 'connection'];
  const crossed = async (method: string, needs: ResponseHearer['needs'] | undefined): Promise<readonly unknown[]> => {
    const { client, upstream } = await stage(
      (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'),
      needs === undefined ? {} : { hearer: listen(needs).hearer },
    );
    const one = await client();
    one.send(head(method, ...ASKED));
    await one.answer();
    const [seen] = upstream.requests;
    if (seen === undefined) throw new Error('nothing reached the upstream');
    return NAMES.map((name) => headerOf(seen, name));
  };
  const ALL = ['gzip, br', 'bytes=0-1', '"a"', '"b"', undefined, undefined];

  it('behaviour: a body that is to be read is asked for whole and uncompressed, whatever copy the client has', async () => {
    expect(await crossed('GET', 'whole body')).toEqual(NAMES.map(() => undefined));
  });

  it('behaviour: the condition of a write stays, because without it the write would be another one', async () => {
    expect(await crossed('POST', 'whole body')).toEqual([undefined, undefined, '"a"', '"b"', undefined, undefined]);
  });

  it('behaviour: trailers are asked for where one is to be read', async () => {
    expect(await crossed('GET', 'trailers')).toEqual([...ALL.slice(0, 4), 'trailers', 'TE']);
  });

  it.each([undefined, 'nothing'] as const)(
    'behaviour: nothing changes for a response of which no more is needed: %s',
    async (needs) => {
      expect(await crossed('GET', needs)).toEqual(ALL);
    },
  );
});
