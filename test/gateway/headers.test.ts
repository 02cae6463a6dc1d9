// What crosses each border: towards the upstream over real sockets (what it reads is what counts), towards the client on
// the pure function, and once over the wire.
import { createServer } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { inspectInbound, isHost, responseHeaders, type ResponseFacts } from '../../src/gateway/headers.ts';
import { mintPermit } from '../../src/domain/decide.ts';
import { headerOf, openRaw } from '../support/raw-client.ts';
import { startRawUpstream, type SeenRequest } from '../support/raw-upstream.ts';
import { REQUEST_ID, startSmallGateway, type SmallGatewayOptions } from '../support/small-gateway.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** What the upstream reads when `head` (request line and headers, without the last empty line) is sent. */
async function crossing(head: string, options: Partial<SmallGatewayOptions> = {}): Promise<SeenRequest> {
  const upstream = await startRawUpstream();
  closers.push(upstream.close);
  const gateway = await startSmallGateway({ upstream: upstream.url, ...options });
  closers.push(gateway.close);
  const client = await openRaw(gateway.port);
  client.send(`${head}\r\n\r\n`);
  const answer = await client.answer(head.startsWith('HEAD'));
  expect(answer.status, client.received()).toBe(200);
  client.close();
  const seen = upstream.requests[0];
  if (seen === undefined) throw new Error('nothing reached the upstream');
  return seen;
}

const GET = 'GET /free/a HTTP/1.1\r\nHost: api.example.com';

/** Header lines, as a head continues. */
const lines = (headers: Readonly<Record<string, string>>): string =>
  Object.entries(headers)
    .map(([name, value]) => `\r\n${name}: ${value}`)
    .join('');

const hasAny = (seen: SeenRequest, text: string): boolean => seen.head.toLowerCase().includes(text.toLowerCase());

describe('a Host', () => {
  const octets = [...Array(301).keys()].map(String).concat('00', '01', '007', '08', '1a', '');
  const ports = [0, 9, 80, 999, 9999, 10000, 59999, 60000, 65535, 65536, 69999, 99999].map((port) => `:${port}`);
  const names = ['a', 'a-1.b_2', '9.a', 'a.9', '1.2.3', '1.2.3.4.5', '1..2.3', '1.2.3.', '0x7f.1', 'a.0x1'];

  it('attack: a text that no URL can have as its host is none, at each edge of octets and ports', () => {
    const addresses = octets.flatMap((octet) => [`${octet}.0.0.1`, `10.${octet}.255.1`, `10.0.0.${octet}`]);
    const hosts = [...names, ...addresses].flatMap((name) =>
      ['', ...ports, ':', ':01', ':x'].map((port) => name + port),
    );
    expect(hosts.filter((host) => isHost(host) && !URL.canParse(`http://${host}`))).toEqual([]);
    const plain = octets
      .slice(0, 256)
      .flatMap((octet) => ['', ':0', ':65535'].map((port) => `${octet}.1.2.${octet}${port}`));
    expect(plain.filter((host) => !isHost(host))).toEqual([]);
  });
});

describe('towards the upstream', () => {
  it('behaviour: end-to-end headers cross as they were, repeated ones too, in order', async () => {
    const seen = await crossing(
      `${GET}${lines({ 'User-Agent': 'curl/8', aCCept: '*/*', Cookie: 'a=1', 'X-Custom': 'one' })}\r\nX-Custom: two\r\nCookie: b=2\r\nAuthorization: Bearer t`,
    );
    expect(seen.headers.slice(0, 8)).toEqual([
      ['Host', 'api.example.com'],
      ['User-Agent', 'curl/8'],
      ['aCCept', '*/*'],
      ['Cookie', 'a=1'],
      ['X-Custom', 'one'],
      ['X-Custom', 'two'],
      ['Cookie', 'b=2'],
      ['Authorization', 'Bearer t'],
    ]);
  });

  const CONDITIONS = {
    'If-None-Match': '*',
    'if-modified-since': 'Mon, 01 Jan 2024 00:00:00 GMT',
    'If-Match': '"a"',
    'If-Unmodified-Since': 'Mon, 01 Jan 2024 00:00:00 GMT',
    'IF-RANGE': '"a"',
    Range: 'bytes=0-1',
  };

  it('behaviour: conditions and ranges cross to the upstream', async () => {
    const seen = await crossing(`${GET}${lines(CONDITIONS)}`);
    for (const [name, value] of Object.entries(CONDITIONS)) expect(headerOf(seen, name)).toBe(value);
  });

  it('attack: no condition or range crosses if the answer to it would cost nothing', async () => {
    const seen = await crossing(`${GET}${lines(CONDITIONS)}`, { unconditional: true });
    for (const name of Object.keys(CONDITIONS)) expect(headerOf(seen, name)).toBeUndefined();
  });

  it('behaviour: a Range by itself crosses even if an unchanged answer would cost nothing: a part is charged', async () => {
    const seen = await crossing(`${GET}${lines({ Range: 'bytes=0-1' })}`, { unconditional: true });
    expect(headerOf(seen, 'range')).toBe('bytes=0-1');
  });

  it('behaviour: bytes from 0x80 in a value cross unchanged', async () => {
    const seen = await crossing(`${GET}\r\nX-Name: caf\xe9 \xc3\xa9`);
    expect(headerOf(seen, 'x-name')).toBe('caf\xe9 \xc3\xa9');
  });

  it('behaviour: the target goes upstream byte for byte', async () => {
    const target = "/free/a;b=c/%E2%82%AC/d?x=%7e&y=[1]&z=a+b&u=http://e/../f&q=''";
    expect((await crossing(`GET ${target} HTTP/1.1\r\nHost: h`)).target).toBe(target);
  });

  it.each([
    ['Keep-Alive', 'timeout=5'],
    ['Proxy-Connection', 'keep-alive'],
    ['Proxy-Authorization', 'Basic eA=='],
    ['Proxy-Authenticate', 'Basic'],
    ['TE', 'trailers'],
    ['Trailer', 'X-T'],
    ['Upgrade', 'h2c'],
    ['HTTP2-Settings', 'AAMAAABk'],
  ])('refuses: the hop-by-hop header %s', async (name, value) => {
    const seen = await crossing(`${GET}\r\n${name}: ${value}`);
    expect(headerOf(seen, name)).toBeUndefined();
    expect(headerOf(seen, 'connection')).toBeUndefined();
  });

  it('refuses: headers that Connection names, wherever it stands, in any case and over several lines', async () => {
    const seen = await crossing(
      `${GET}\r\nX-One: 1\r\nConnection: close, x-one\r\nconnection: X-TWO\r\nX-Two: 2\r\nX-Three: 3`,
    );
    expect(headerOf(seen, 'x-one')).toBeUndefined();
    expect(headerOf(seen, 'x-two')).toBeUndefined();
    expect(headerOf(seen, 'x-three')).toBe('3');
  });

  it('attack: Connection cannot name a header that we set', async () => {
    const permit = mintPermit('paid', undefined, ['Tollgate-Charge-Id', 'chg_1', 'Tollgate-Payer', '0xabc']);
    const names =
      'host, content-length, x-forwarded-for, x-forwarded-host, x-forwarded-proto, x-request-id, tollgate-charge-id, tollgate-payer';
    const seen = await crossing(`POST /free/a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nConnection: ${names}`, {
      permit,
    });
    for (const name of names.split(', ')) expect(headerOf(seen, name), name).toBeDefined();
    expect(headerOf(seen, 'tollgate-charge-id')).toBe('chg_1');
  });

  const SPELLINGS = [
    'Tollgate-Charge-Id',
    'tollgate-charge-id',
    'TOLLGATE-CHARGE-ID',
    'Tollgate_Charge_Id',
    'Tollgate.Charge.Id',
    'tollgate_charge-id',
    'Tollgate!Charge!Id',
    'Tollgate~Charge~Id',
    "Tollgate'Charge'Id",
    'Tollgate-Payer',
    'Tollgate_Payer',
    'Tollgate-Network',
    'Tollgate_Network',
    'Tollgate-Route-Id',
    'Tollgate-Amount',
    'Tollgate-Currency',
    'Tollgate-Customer-Id',
    'Tollgate-Anything-Else',
    'Tollgate',
    '__proto__',
    'Transfer_Encoding',
    'Content_Length',
    'X_Forwarded_For',
    'X.Forwarded.For',
    'X_Real_IP',
    'PAYMENT_SIGNATURE',
  ];

  it.each(['GET', 'POST', 'HEAD', 'OPTIONS', 'DELETE'])(
    'attack: no spelling of a reserved name crosses on a %s',
    async (method) => {
      const permit = mintPermit('paid', undefined, ['Tollgate-Charge-Id', 'chg_real']);
      const forged = SPELLINGS.map((name) => `\r\n${name}: forged`).join('');
      const seen = await crossing(`${method} /free/a HTTP/1.1\r\nHost: h${forged}`, { permit });
      expect(hasAny(seen, 'forged'), seen.head).toBe(false);
      expect(seen.headers.filter(([name]) => /tollgate/i.test(name))).toEqual([['Tollgate-Charge-Id', 'chg_real']]);
    },
  );

  it('attack: reserved names do not cross on a free request, with Expect, or in trailers', async () => {
    const forged = SPELLINGS.map((name) => `\r\n${name}: forged`).join('');
    expect(hasAny(await crossing(`${GET}${forged}`), 'forged')).toBe(false);
    const upstream = await startRawUpstream();
    closers.push(upstream.close);
    const gateway = await startSmallGateway({ upstream: upstream.url });
    closers.push(gateway.close);
    const client = await openRaw(gateway.port);
    client.send(
      `POST /free/a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked${forged.replace(/\r\n(?:Transfer|Content)_[^\r]*/g, '')}\r\n\r\n`,
    );
    client.send('2\r\nhi\r\n0\r\nTollgate-Payer: forged\r\nX-T: forged\r\n\r\n');
    expect((await client.answer()).status).toBe(100);
    expect((await client.answer()).status).toBe(200);
    client.close();
    expect(upstream.requests[0]?.body.toString()).toBe('hi');
    expect(upstream.requests[0]?.head).not.toContain('forged');
  });

  it.each([
    'X-Original-URL',
    'X-Rewrite-URL',
    'X-Original-URI',
    'X-Forwarded-Uri',
    'X-Forwarded-Path',
    'X-Forwarded-Prefix',
    'X-Forwarded-Method',
    'X-Original-Host',
    'X-Original-Method',
    'X-Host',
    'X-Script-Name',
    'Forwarded',
    'x-middleware-subrequest',
    'X-Middleware-Rewrite',
    'x-invoke-path',
    'x-matched-path',
    'X-Sendfile-Type',
    'X-Accel-Mapping',
    'X-MS-Original-URL',
    'X-Original-Path',
    'X-Rewrite-Uri',
    'X-Real-Url',
    'X-Override-URL',
    'X-HTTP-Path-Override',
    'X-HTTP-Host-Override',
    'Path-Info',
    'X-Path-Info',
    'Request-Uri',
    'Client-Request-Uri',
    'X-Script-Name',
    'X-Waws-Unencoded-Url',
    'X-Envoy-Original-Path',
  ])('attack: the header %s never crosses, not even from a trusted peer', async (name) => {
    expect(hasAny(await crossing(`${GET}\r\n${name}: /v1/export`, { trusted: true }), '/v1/export')).toBe(false);
  });

  it.each(['X-Url', 'X-Path', 'X-Original-Name', 'X-Uri-Scheme', 'X-Pathway', 'Base-Url', 'X-Real-Name'])(
    "behaviour: the header %s, which may be the application's own, crosses",
    async (name) => {
      expect(headerOf(await crossing(`${GET}\r\n${name}: a`), name)).toBe('a');
    },
  );

  it.each(['X-HTTP-Method', 'X-HTTP-Method-Override', 'X-Method-Override'])(
    'attack: the header %s crosses only if no route protects the path',
    async (name) => {
      expect(headerOf(await crossing(`${GET}\r\n${name}: DELETE`, { protectedPath: true }), name)).toBeUndefined();
      expect(headerOf(await crossing(`${GET}\r\n${name}: DELETE`, { protectedPath: false }), name)).toBe('DELETE');
    },
  );

  it.each(['PAYMENT-SIGNATURE', 'X-PAYMENT', 'PAYMENT-RESPONSE', 'Payment-Anything'])(
    'refuses: the header %s, unless the operator passes payments on',
    async (name) => {
      expect(headerOf(await crossing(`${GET}\r\n${name}: x`), name)).toBeUndefined();
      expect(headerOf(await crossing(`${GET}\r\n${name}: x`, { passPaymentHeaders: true }), name)).toBe('x');
    },
  );

  const CLAIMS = lines({
    'X-Forwarded-For': '6.6.6.6',
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Host': 'evil.example',
    'X-Forwarded-Port': '666',
    'X-Forwarded-User': 'root',
    'X-Real-IP': '6.6.6.6',
  });

  it('attack: nobody but a trusted peer says who the client is', async () => {
    const seen = await crossing(GET + CLAIMS);
    expect(headerOf(seen, 'x-forwarded-for')).toBe('127.0.0.1');
    expect(headerOf(seen, 'x-forwarded-proto')).toBe('http');
    expect(headerOf(seen, 'x-forwarded-host')).toBe('api.example.com');
    for (const name of ['x-real-ip', 'x-forwarded-port', 'x-forwarded-user'])
      expect(headerOf(seen, name)).toBeUndefined();
  });

  it('behaviour: a trusted peer is believed and added to', async () => {
    const seen = await crossing(`${GET}${CLAIMS}\r\nX-Forwarded-For: 7.7.7.7`, { trusted: true });
    expect(headerOf(seen, 'x-forwarded-for')).toBe('6.6.6.6, 7.7.7.7, 127.0.0.1');
    expect(headerOf(seen, 'x-forwarded-proto')).toBe('https');
    expect(headerOf(seen, 'x-forwarded-host')).toBe('evil.example');
    expect(headerOf(seen, 'x-real-ip')).toBe('6.6.6.6');
    expect(headerOf(seen, 'x-forwarded-port')).toBe('666');
  });

  it('behaviour: the request id and the trace context are the ones we decided on', async () => {
    const seen = await crossing(
      `${GET}${lines({ 'X-Request-Id': 'forged', traceparent: 'forged', tracestate: 'forged=1' })}`,
    );
    expect(headerOf(seen, 'x-request-id')).toBe(REQUEST_ID);
    expect(hasAny(seen, 'forged')).toBe(false);
  });

  it('behaviour: an HTTP/1.0 client without Host gets one sent for it', async () => {
    const seen = await crossing('GET /free/a HTTP/1.0');
    expect(seen.version).toBe('HTTP/1.1');
    expect(headerOf(seen, 'host')).toMatch(/^127\.0\.0\.1:\d+$/);
  });

  it('behaviour: framing is one of length, chunked and none', async () => {
    const framing = (seen: SeenRequest): (string | undefined)[] => [
      headerOf(seen, 'content-length'),
      headerOf(seen, 'transfer-encoding'),
    ];
    expect(framing(await crossing(GET))).toEqual([undefined, undefined]);
    expect(framing(await crossing('POST /free/a HTTP/1.1\r\nHost: h'))).toEqual([undefined, undefined]);
    expect(framing(await crossing('POST /free/a HTTP/1.1\r\nHost: h\r\nContent-Length: 0'))).toEqual(['0', undefined]);
    expect(framing(await crossing('POST /free/a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi'))).toEqual([
      '2',
      undefined,
    ]);
    expect(
      framing(await crossing('PUT /free/a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nhi\r\n0')),
    ).toEqual([undefined, 'chunked']);
  });

  it('behaviour: a Content-Disposition crosses byte for byte beside a Content-Length', async () => {
    const value = 'attachment; filename="\xe4\xb8\xad.txt"';
    const seen = await crossing(
      `POST /free/a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Disposition: ${value}\r\n\r\nhi`,
    );
    expect(headerOf(seen, 'content-disposition')).toBe(value);
  });
});

describe('inspectInbound', () => {
  it.each([
    ['HTTP/1.0 without Host', 'GET / HTTP/1.0\r\n\r\n', undefined],
    ['an IPv6 Host with a port', 'GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n', undefined],
    ['a Host with an underscore', 'GET / HTTP/1.1\r\nHost: my_service:80\r\n\r\n', undefined],
    ['a Host with a query', 'GET / HTTP/1.1\r\nHost: a?b\r\n\r\n', 'request_malformed'],
    ['a Host with a comma', 'GET / HTTP/1.1\r\nHost: a,b\r\n\r\n', 'request_malformed'],
    ['a Host with a bad port', 'GET / HTTP/1.1\r\nHost: a:b\r\n\r\n', 'request_malformed'],
    ...['a:99999', '256.256.256.256', '1.2.3.4.5', 'user@host', 'a..b', '.a', ':80', 'a:', '[1::2::3]', '[::1', ''].map(
      (host): [string, string, string] => [
        `a Host that is ${JSON.stringify(host)}`,
        `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
        'request_malformed',
      ],
    ),
    ['a Host longer than a name can be', `GET / HTTP/1.1\r\nHost: ${'a.'.repeat(131)}a\r\n\r\n`, 'request_malformed'],
    ...['127.0.0.1:8402', 'localhost:65535', 'a.b.', '_x_.svc', 'xn--caf-dma.example', '9.example:80', 'A-1'].map(
      (host): [string, string, undefined] => [`the Host ${host}`, `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`, undefined],
    ),
    ['two equal Hosts', 'GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n', 'request_malformed'],
    ['a Host on HTTP/1.0 that names none', 'GET / HTTP/1.0\r\nHost: a/b\r\n\r\n', 'request_malformed'],
    ['a leading zero', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 02\r\n\r\nhi', 'request_malformed'],
    ['a coding on 1.0', 'POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 'request_malformed'],
    [
      'gzip, chunked',
      'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      'coding_unsupported',
    ],
    ['HTTP/2.0', 'GET / HTTP/2.0\r\nHost: a\r\n\r\n', 'http_version_unsupported'],
    ['HTTP/0.9', 'GET /\r\n\r\n', 'http_version_unsupported'],
  ])('refuses: a request that a paywall must not accept: %s', async (_, bytes, code) => {
    const server = createServer({ requireHostHeader: false }, (req, res) =>
      res.end(inspectInbound(req)?.code ?? 'fine'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => new Promise((resolve) => void server.close(() => resolve())));
    const address = server.address();
    const client = await openRaw(typeof address === 'object' && address !== null ? address.port : 0);
    client.send(bytes);
    expect((await client.answer()).body.toString()).toBe(code ?? 'fine');
    client.close();
  });
});

describe('towards the client', () => {
  const FACTS: ResponseFacts = {
    requestId: REQUEST_ID,
    paid: false,
    passPaymentHeaders: false,
    upstream: new URL('http://127.0.0.1:3000'),
    publicOrigin: 'https://api.example.com',
  };
  const PAID = { ...FACTS, paid: true };

  const crossed = (facts: ResponseFacts, raw: readonly string[], status = 200): [string, string][] => {
    const out = responseHeaders(facts, status, [...raw]);
    const pairs: [string, string][] = [];
    for (let i = 0; i + 1 < out.length; i += 2) pairs.push([out[i] ?? '', out[i + 1] ?? '']);
    return pairs;
  };
  const valueOf = (facts: ResponseFacts, raw: readonly string[], name: string, status = 200): string | undefined =>
    headerOf({ headers: crossed(facts, raw, status) }, name);

  it('behaviour: the headers of an answer cross as they are, Set-Cookie line by line, and the request id is added', () => {
    expect(
      crossed(FACTS, ['Content-Type', 'a/b', 'Set-Cookie', 'a=1', 'set-cookie', 'b=2', 'X-A', 'é', 'X_Odd', '1']),
    ).toEqual([
      ['Content-Type', 'a/b'],
      ['Set-Cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['X-A', 'é'],
      ['X_Odd', '1'],
      ['X-Request-Id', REQUEST_ID],
    ]);
  });

  it('refuses: hop-by-hop headers of an answer, and headers that its Connection names', () => {
    const raw = [
      'X-One',
      '1',
      'Connection',
      'X-One, close',
      'Keep-Alive',
      'timeout=5',
      'Transfer-Encoding',
      'chunked',
      'Trailer',
      'X',
    ];
    expect(
      crossed(FACTS, [...raw, 'Upgrade', 'h2c', 'Proxy-Authenticate', 'Basic', 'Proxy-Connection', 'x', 'TE', 'x']),
    ).toEqual([['X-Request-Id', REQUEST_ID]]);
  });

  it.each([
    'X-Accel-Redirect',
    'X-Accel-Expires',
    'X-Accel-Buffering',
    'X-Sendfile',
    'X-Sendfile2',
    'Alt-Svc',
    'X-Request-Id',
  ])('refuses: the header %s of an answer, which is not for the client', (name) => {
    expect(valueOf(FACTS, [name, 'theirs'], name)).toBe(name === 'X-Request-Id' ? REQUEST_ID : undefined);
  });

  it.each(['PAYMENT-REQUIRED', 'PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE', 'payment-response', 'Payment_Response'])(
    'attack: an upstream cannot forge %s',
    (name) => {
      expect(valueOf(FACTS, [name, 'x'], name)).toBeUndefined();
      expect(valueOf({ ...PAID, passPaymentHeaders: true }, [name, 'x'], name)).toBeUndefined();
      expect(valueOf({ ...FACTS, passPaymentHeaders: true }, [name, 'x'], name)).toBe('x');
    },
  );

  it.each(['Tollgate-Reason', 'tollgate_reason', 'Tollgate-Charge-Id'])(
    'attack: an upstream cannot forge %s',
    (name) => {
      expect(valueOf({ ...FACTS, passPaymentHeaders: true }, [name, 'x'], name)).toBeUndefined();
    },
  );

  it.each<[string, string[], string]>([
    ['nothing', [], 'private, no-store'],
    ['public', ['Cache-Control', 'public, max-age=60'], 'private, no-store'],
    ['private', ['Cache-Control', 'Private, max-age=60'], 'Private, max-age=60'],
    ['private in a second line', ['Cache-Control', 'max-age=60', 'cache-control', 'private'], 'max-age=60, private'],
    ['private for one header', ['Cache-Control', 'private="set-cookie", max-age=60'], 'private, no-store'],
    ['public and private', ['Cache-Control', 'public, private'], 'private, no-store'],
    ['x-private', ['Cache-Control', 'x-private'], 'private, no-store'],
  ])('attack: no shared cache keeps an answer that was paid for, if the upstream says %s', (_, raw, expected) => {
    expect(valueOf(PAID, raw, 'cache-control')).toBe(expected);
    expect(
      crossed(PAID, raw).filter(([name]) => name === 'Cache-Control' && !raw.includes('Cache-Control')).length,
    ).toBeLessThan(2);
  });

  it.each([
    'CDN-Cache-Control',
    'Cloudflare-CDN-Cache-Control',
    'X-LiteSpeed-Cache-Control',
    'Edge-Control',
    'Surrogate-Control',
    'Expires',
  ])('attack: the header %s cannot make a cache keep a paid answer', (name) => {
    expect(valueOf(PAID, [name, 'max-age=60', 'Cache-Control', 'private'], name)).toBeUndefined();
    expect(valueOf(FACTS, [name, 'max-age=60'], name)).toBe('max-age=60');
  });

  it('behaviour: a free answer is cached as the upstream says', () => {
    expect(valueOf(FACTS, ['Cache-Control', 'public, max-age=60'], 'cache-control')).toBe('public, max-age=60');
    expect(valueOf(FACTS, [], 'cache-control')).toBeUndefined();
  });

  it('behaviour: our names are exposed on paid answers that the upstream opens to an origin', () => {
    const open = ['Access-Control-Allow-Origin', '*', 'Access-Control-Expose-Headers', 'X-Total'];
    expect(valueOf(PAID, open, 'access-control-expose-headers')).toMatch(
      /^X-Total, PAYMENT-REQUIRED, PAYMENT-RESPONSE/,
    );
    expect(valueOf(PAID, [], 'access-control-expose-headers')).toBeUndefined();
    expect(valueOf(FACTS, open, 'access-control-expose-headers')).toBe('X-Total');
  });

  it.each([
    ['http://127.0.0.1:3000/a?b#c', 'https://api.example.com/a?b#c'],
    ['HTTP://127.0.0.1:3000', 'https://api.example.com'],
    ['//127.0.0.1:3000/a', 'https://api.example.com/a'],
    ['http://127.0.0.1:3000//evil.example/a', 'https://api.example.com//evil.example/a'],
    ['/a', '/a'],
    ['a/b', 'a/b'],
    ['https://127.0.0.1:3000/a', 'https://127.0.0.1:3000/a'],
    ['http://127.0.0.1:30001/a', 'http://127.0.0.1:30001/a'],
    ['http://127.0.0.1:3000.evil.example/a', 'http://127.0.0.1:3000.evil.example/a'],
    ['http://[', 'http://['],
    ['https://login.example.com/a', 'https://login.example.com/a'],
  ])('attack: a redirect to the upstream itself leads to us: %s', (from, to) => {
    expect(valueOf(FACTS, ['Location', from], 'location', 302)).toBe(to);
  });

  it('behaviour: an answer of 204 has no length, one of 304 may have one', () => {
    expect(valueOf(FACTS, ['Content-Length', '3'], 'content-length', 204)).toBeUndefined();
    expect(valueOf(FACTS, ['Content-Length', '3'], 'content-length', 304)).toBe('3');
  });
});
