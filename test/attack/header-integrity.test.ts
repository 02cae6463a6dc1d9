// The upstream never reads a client's word under a name of ours, in whatever spelling, place or kind of request; on a paid
// request it reads ours, each exactly once, and on a free one none. Names are compared as CGI would see them.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mintPermit } from '../../src/domain/decide.ts';
import { openRaw } from '../support/raw-client.ts';
import { REQUEST_ID } from '../support/small-gateway.ts';
import type { StrictRequest } from '../support/strict-upstream.ts';
import { LONG, startWireLab, type WireLab, LONG_MS } from '../support/wire-lab.ts';
import { startWireProgram, type WireProgram } from '../support/wire-program.ts';
import {
  falseSpellings,
  folded,
  FORGED,
  isReserved,
  malformedLines,
  PAID_OURS,
  RESERVED,
  RESERVED_AND_FRAMING,
  spellings,
} from './header-spellings.ts';

const PERMIT = mintPermit(
  'paid',
  undefined,
  PAID_OURS.flatMap((name) => [name, `ours of ${name}`]),
);

/** How a request carries headers to the upstream: `lines` end with a line end each. */
type Carrier = (target: string, lines: string) => string;

const HANDSHAKE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';

const bodyless =
  (method: string, version = '1.1'): Carrier =>
  (target, lines) =>
    `${method} ${target} HTTP/${version}\r\nHost: h\r\n${lines}\r\n`;

const CARRIERS: Readonly<Record<string, Carrier>> = {
  'a GET': bodyless('GET'),
  'a HEAD': bodyless('HEAD'),
  'an OPTIONS': bodyless('OPTIONS'),
  'a DELETE': bodyless('DELETE'),
  'a GET of HTTP/1.0': bodyless('GET', '1.0'),
  'a POST with a length': (target, lines) =>
    `POST ${target} HTTP/1.1\r\nHost: h\r\n${lines}Content-Length: 2\r\n\r\nhi`,
  'a chunked POST': (target, lines) =>
    `POST ${target} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n${lines}\r\n2\r\nhi\r\n0\r\n\r\n`,
  'a POST that expects': (target, lines) =>
    `POST ${target} HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n${lines}\r\nhi`,
  'a handshake': (target, lines) => `GET ${target} HTTP/1.1\r\nHost: h\r\n${HANDSHAKE}${lines}\r\n`,
  'an upgrade that is not taken': (target, lines) =>
    `GET ${target} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n${lines}\r\n`,
  'the second of two requests': (target, lines) =>
    `GET ${target} HTTP/1.1\r\nHost: h\r\n\r\nGET ${target} HTTP/1.1\r\n${lines}Host: h\r\n\r\n`,
  'a POST whose trailers carry them as well': (target, lines) =>
    `POST ${target} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n${lines}\r\n0\r\n${lines}\r\n`,
};

/** True names that the proxy itself writes to frame and route the request. */
const FRAMING = new Set(['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade']);

/** Name and value of what the upstream read under reserved names. */
function reservedOf({ headers }: StrictRequest): readonly string[] {
  return headers
    .filter(([name]) => isReserved(name) && !FRAMING.has(name.toLowerCase()))
    .map(([name, value]) => `${name}: ${value}`)
    .toSorted();
}

/** What the proxy set, and nothing else. */
const set = (paid: boolean): readonly string[] =>
  [
    'X-Forwarded-For: 127.0.0.1',
    'X-Forwarded-Proto: http',
    'X-Forwarded-Host: h',
    `X-Request-Id: ${REQUEST_ID}`,
    ...(paid ? PAID_OURS.map((name) => `${name}: ours of ${name}`) : []),
  ].toSorted();

const labs = new Map<'free' | 'paid', WireLab>();
beforeAll(async () => {
  labs.set('free', await startWireLab());
  labs.set('paid', await startWireLab({ permit: PERMIT }));
});
afterAll(async () => {
  for (const lab of labs.values()) {
    expect(lab.upstream.violations).toEqual([]);
    expect(lab.total(), 'requests seen and forwarded').toBe(lab.gateway.forwards());
    await lab.close();
  }
});

/** Sends `bytes` and returns the statuses of the answers up to the first final one of each request, and what was seen. */
async function send(
  lab: WireLab,
  carry: (target: string) => string,
): Promise<{ status: number; seen: readonly StrictRequest[] }> {
  const token = lab.token();
  const bytes = carry(`/free/${token}`);
  const requests = bytes.match(/ HTTP\/1\.[01]\r\n/g)?.length ?? 1;
  const client = await openRaw(lab.gateway.port);
  client.send(bytes);
  let status = 0;
  for (let answered = 0; answered < requests;) {
    ({ status } = await client.answer(bytes.startsWith('HEAD ')));
    if (status !== 100) answered++;
    if (status >= 400) break;
  }
  client.close();
  return { status, seen: lab.requestsOf(token) };
}

it('behaviour: every reserved name is tried in forty spellings and more', () => {
  expect(RESERVED.length).toBeGreaterThan(35);
  for (const name of RESERVED_AND_FRAMING)
    expect(new Set([...spellings(name), ...malformedLines(name)]).size, name).toBeGreaterThanOrEqual(40);
});

describe.each(['free', 'paid'] as const)('a request that is %s', (kind) => {
  const paid = kind === 'paid';
  const lab = (): WireLab => {
    const found = labs.get(kind);
    if (found === undefined) throw new Error('no lab');
    return found;
  };

  it.each(RESERVED)('attack: no spelling of %s crosses', async (name) => {
    const lines = spellings(name)
      .map((spelling) => `${spelling}: ${FORGED}\r\n`)
      .join('');
    for (const [carrier, carry] of Object.entries(CARRIERS)) {
      const { status, seen } = await send(lab(), (target) => carry(target, lines));
      expect([200, 101], carrier).toContain(status);
      const last = seen.at(-1);
      if (last === undefined) throw new Error('nothing arrived');
      expect(reservedOf(last), carrier).toEqual(set(paid));
      expect(last.connection.bytes(), carrier).not.toContain(FORGED);
    }
  });

  it.each(['Host', 'Content-Length', 'Transfer-Encoding', 'Connection', 'Upgrade', 'Expect'])(
    'attack: no false spelling of %s crosses, and none frames anything',
    async (name) => {
      const lines = falseSpellings(name)
        .map((spelling) => `${spelling}: 5\r\n`)
        .join('');
      for (const [carrier, carry] of Object.entries(CARRIERS)) {
        const { status, seen } = await send(lab(), (target) => carry(target, lines));
        expect([200, 101], carrier).toContain(status);
        const read = seen.at(-1)?.headers.map(([header]) => folded(header)) ?? [];
        const others = carrier.includes('handshake') ? ['connection', 'upgrade'] : [];
        for (const framing of ['host', 'expect', 'connection', 'upgrade', 'content-length', 'transfer-encoding'])
          expect(read.filter((header) => header === framing).length, `${carrier}: ${framing}`).toBeLessThanOrEqual(
            framing === 'expect'
              ? 0
              : ['connection', 'upgrade'].includes(framing)
                ? Number(others.includes(framing))
                : 1,
          );
      }
    },
  );

  it.each(RESERVED_AND_FRAMING)('refuses: malformed lines that could be read as the header %s', async (name) => {
    for (const line of malformedLines(name)) {
      const { status, seen } = await send(lab(), (target) => bodyless('GET')(target, `X-B: c\r\n${line}\r\n`));
      expect(status, JSON.stringify(line)).toBe(400);
      expect(seen).toEqual([]);
    }
  });

  it.each(RESERVED)(
    'attack: a header %s that is repeated, empty, in lists or named by Connection does not cross',
    async (name) => {
      for (const lines of [
        `${name}: ${FORGED}\r\n${name}: ${FORGED}\r\n`,
        `${name}:\r\n${name}: ${FORGED}\r\n`,
        `${name}: a, ${FORGED}\r\n${name.toLowerCase()}: ${FORGED}, b\r\n`,
        `Connection: ${name}\r\n${name}: ${FORGED}\r\n`,
        `Connection: close, ${name.toLowerCase()}, ${name.replaceAll('-', '_')}\r\n${name}: ${FORGED}\r\n`,
        `${name}: ${FORGED}\r\nConnection: keep-alive\r\nConnection: ${name.toUpperCase()} , x\r\n`,
        `Connection: ${RESERVED.join(', ')}\r\n${name}: ${FORGED}\r\n`,
      ]) {
        const { status, seen } = await send(lab(), (target) => bodyless('GET')(target, lines));
        expect(status, lines).toBe(200);
        const [request] = seen;
        if (request === undefined) throw new Error('nothing arrived');
        expect(reservedOf(request), lines).toEqual(set(paid));
        expect(request.head).not.toContain(FORGED);
      }
    },
  );

  it(
    'attack: whatever the set of headers, the upstream reads under reserved names only what the proxy set',
    async () => {
      const anyName = fc.oneof(
        { weight: 5, arbitrary: fc.constantFrom(...RESERVED).chain((name) => fc.constantFrom(...spellings(name))) },
        { weight: 1, arbitrary: fc.constantFrom(...['Host', 'Content-Length', 'Upgrade'].flatMap(falseSpellings)) },
        { weight: 2, arbitrary: fc.stringMatching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,20}$/) },
      );
      const line = fc.oneof(
        { weight: 6, arbitrary: fc.tuple(anyName, fc.constantFrom(FORGED, '', `a, ${FORGED}`, `${FORGED}\xe9`)) },
        {
          weight: 1,
          arbitrary: fc.tuple(
            fc.constantFrom('Connection', 'connection'),
            fc.array(anyName, { minLength: 1, maxLength: 4 }).map((names) => names.join(', ')),
          ),
        },
      );
      const used = new Set(['content-length', 'transfer-encoding', 'host', 'expect', 'upgrade']);
      const lines = fc
        .array(line, { maxLength: 14 })
        // The true names of the framing are the carrier's to say.
        .map((all) => all.filter(([name]) => !used.has(name.toLowerCase())))
        .map((all) => all.map(([name, value]) => `${name}: ${value}\r\n`).join(''));
      await fc.assert(
        fc.asyncProperty(lines, fc.constantFrom(...Object.entries(CARRIERS)), async (given, [carrier, carry]) => {
          // A trailer may be refused where a header is not.
          const { status, seen } = await send(lab(), (target) => carry(target, given));
          expect([200, 101]).toContain(status);
          for (const request of carrier === 'the second of two requests' ? seen.slice(1) : seen)
            expect(reservedOf(request)).toEqual(set(paid));
        }),
        { numRuns: LONG ? 5000 : 250 },
      );
    },
    LONG_MS,
  );
});

describe('a request to the whole program', () => {
  let program: WireProgram | undefined;
  beforeAll(async () => {
    program = await startWireProgram();
  });
  afterAll(() => program?.stop());

  // A method override crosses where no route protects the path, and no route does here.
  const names = RESERVED.filter((name) => name !== 'X-HTTP-Method-Override');

  it.each(names)('attack: no spelling of %s crosses the whole program', async (name) => {
    if (program === undefined) throw new Error('no program');
    const { front } = program;
    const lines = spellings(name)
      .map((spelling) => `${spelling}: ${FORGED}\r\n`)
      .join('');
    for (const [carrier, carry] of Object.entries(CARRIERS)) {
      const token = front.token();
      const bytes = carry(`/free/${token}`, lines);
      const client = await openRaw(front.port);
      client.send(bytes);
      const answers = carrier === 'the second of two requests' || carrier === 'a POST that expects' ? 2 : 1;
      for (let i = 0; i < answers; i++)
        expect([100, 101, 200]).toContain((await client.answer(bytes.startsWith('HEAD '))).status);
      client.close();
      const request = front.witness.requestsOf(token).at(-1);
      if (request === undefined) throw new Error('nothing arrived');
      expect(request.head, carrier).not.toContain(FORGED);
      const read = reservedOf(request);
      expect(
        read.map((header) => header.split(':')[0]),
        carrier,
      ).toEqual(['X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'X-Request-Id']);
    }
    expect(front.witness.upstream.violations).toEqual([]);
  });
});
