// What the differential test draws from a seed: requests with their framings, bodies and cuts, and for each the bytes that
// the upstream answers with. Whatever is drawn is something that a careful client or an honest upstream may send; what
// has to come of it is for the oracle (oracle.ts) and for what was sent to say.
import { createRandom, type Random } from './random.ts';

/** Where bytes are cut into writes, and how long each write waits: 0 not at all, below 0 for a turn, else milliseconds. */
export type Pieces = readonly { readonly bytes: Buffer; readonly waitMs: number }[];

export type Answer = {
  /** Sent as soon as the head of the request is there, or when the request is whole. */
  readonly when: 'early' | 'whole';
  /** Cut short where the connection breaks off. */
  readonly bytes: Buffer;
  readonly pieces: Pieces;
  readonly afterwards: 'keep' | 'fin' | 'reset';
  /** From its beginning on the upstream reads nothing any more. */
  readonly deaf: boolean;
};

export type Exchange = {
  readonly token: string;
  readonly method: string;
  readonly version: '1.0' | '1.1';
  readonly framing: 'none' | 'length' | 'chunked';
  readonly body: Buffer;
  /** The body as it goes over the wire. */
  readonly coded: Buffer;
  /** Lines of the head beyond those that every request has. */
  readonly lines: readonly string[];
  /** Waits for 100 before its body. */
  readonly expects: boolean;
  readonly answer: Answer;
};

/** Requests that are sent one behind the other without waiting for answers. */
export type Burst = {
  readonly exchanges: readonly Exchange[];
  readonly random: Random;
  /** The client leaves after this share of the burst's bytes was sent, or as soon as an answer begins. */
  readonly leaves: { readonly when: 'sending' | 'reading'; readonly share: number } | undefined;
};

export type PlanOptions = {
  readonly exchanges: number;
  /** Upstream's statuses. */
  readonly statuses: readonly [number, ...number[]];
  readonly methods: readonly [string, ...string[]];
};

export const TURN = -1;

/** The bursts of one client. */
export function drawBursts(seed: number, client: number, options: PlanOptions): Burst[] {
  const random = createRandom(Math.imul(seed, 0x9e3779b1) + client);
  const bursts: Burst[] = [];
  for (let made = 0; made < options.exchanges;) {
    const size = Math.min(options.exchanges - made, random.chance(0.3) ? random.between(2, 5) : 1);
    const exchanges = Array.from({ length: size }, (_, i) =>
      drawExchange(
        random,
        `k${String(client).padStart(3, '0')}${String(made + i).padStart(4, '0')}`,
        size === 1,
        options,
      ),
    );
    made += size;
    const leaves = random.chance(0.05)
      ? { when: random.pick(['sending', 'reading'] as const), share: random.below(100) / 100 }
      : undefined;
    bursts.push({ exchanges, random, leaves });
  }
  return bursts;
}

function drawExchange(random: Random, token: string, alone: boolean, options: PlanOptions): Exchange {
  const method = random.pick(options.methods);
  const usual = ['POST', 'PUT', 'PATCH'].includes(method);
  const version = alone && random.chance(0.04) ? '1.0' : '1.1';
  const framing = random.chance(usual ? 0.05 : 0.85)
    ? 'none'
    : version === '1.1' && random.chance(0.4)
      ? 'chunked'
      : 'length';
  const body = framing === 'none' ? Buffer.alloc(0) : drawBody(random, drawSize(random));
  const coded = framing === 'chunked' ? inChunks(random, body) : body;
  const expects = alone && version === '1.1' && body.length > 0 && random.chance(0.1);
  const lines = [`X-Probe: ${token}`];
  if (framing === 'length') lines.push(`Content-Length: ${body.length}`);
  if (framing === 'chunked') lines.push('Transfer-Encoding: chunked');
  if (expects) lines.push('Expect: 100-continue');
  if (alone && version === '1.1' && random.chance(0.05)) lines.push('Connection: close');
  return {
    token,
    method,
    version,
    framing,
    body,
    coded,
    lines,
    expects,
    answer: drawAnswer(random, token, method, body, options),
  };
}

function drawAnswer(random: Random, token: string, method: string, sent: Buffer, options: PlanOptions): Answer {
  const status = random.pick(options.statuses);
  const version = random.chance(0.05) ? '1.0' : '1.1';
  const bodyless = status === 204 || status === 304;
  const framing = bodyless
    ? 'none'
    : random.pick(version === '1.1' ? ['length', 'length', 'chunked', 'close'] : ['length', 'close']);
  const body = framing === 'none' ? Buffer.alloc(0) : drawBody(random, drawSize(random));
  const when = sent.length > 0 && random.chance(0.15) ? 'early' : 'whole';
  const deaf = when === 'early' && random.chance(0.3);
  const closes = deaf || framing === 'close' || version === '1.0' || random.chance(0.1);
  let head = '';
  if (version === '1.1' && random.chance(0.2)) head += drawInformation(random);
  head += `HTTP/${version} ${status} ${random.pick(['OK', '', 'a reason of its own'])}\r\nX-Answer: ${token}\r\n`;
  for (let i = random.below(8); i > 0; i--)
    head += `X-H${i}:${random.pick([' ', ''])}${drawText(random, random.below(300))}\r\n`;
  if (framing === 'length') head += `Content-Length: ${body.length}\r\n`;
  if (framing === 'chunked') head += 'Transfer-Encoding: chunked\r\n';
  if (closes && (version === '1.1' || random.chance(0.5))) head += 'Connection: close\r\n';
  const coded = method === 'HEAD' ? Buffer.alloc(0) : framing === 'chunked' ? inChunks(random, body) : body;
  const whole = Buffer.concat([Buffer.from(`${head}\r\n`, 'latin1'), coded]);
  if (random.chance(0.08)) {
    const bytes = whole.subarray(0, random.below(whole.length));
    return { when, bytes, pieces: cut(random, bytes), afterwards: random.pick(['fin', 'reset'] as const), deaf };
  }
  return { when, bytes: whole, pieces: cut(random, whole), afterwards: closes ? 'fin' : 'keep', deaf };
}

function drawInformation(random: Random): string {
  const one = random.pick(['100 Continue\r\n', '102 Processing\r\n', '103 Early Hints\r\nLink: </a>; rel=preload\r\n']);
  return `HTTP/1.1 ${one}\r\n`.repeat(random.between(1, 3));
}

/** Around every bound that somebody has: packets, joined writes, buffers of streams and sockets. */
function drawSize(random: Random): number {
  switch (random.below(12)) {
    case 0:
      return 0;
    case 1:
    case 2:
      return random.between(1, 20);
    case 3:
    case 4:
    case 5:
      return random.between(20, 2000);
    case 6:
      return random.pick([1447, 1448, 1449, 2896, 3000, 4096]);
    case 7:
      return random.pick([16_383, 16_384, 16_385]);
    case 8:
      return random.pick([65_535, 65_536, 65_537]);
    case 9:
      return random.chance(0.3) ? random.between(100_000, 1_048_576) : random.between(2000, 100_000);
    default:
      return random.between(2000, 20_000);
  }
}

/** Text with line feeds, bytes of any kind, or requests that nobody may take for some. */
function drawBody(random: Random, size: number): Buffer {
  const kind = random.below(3);
  if (kind === 0) return Buffer.alloc(size, `a line of text ${random.below(1000)}\n\r\n`);
  if (kind === 1) return Buffer.alloc(size, Buffer.from(Array.from({ length: 251 }, () => random.below(256))));
  return Buffer.alloc(
    size,
    `GET /free/k9${random.between(10_000, 99_999)} HTTP/1.1\r\nHost: smuggled\r\n\r\nHTTP/1.1 200 OK\r\n`,
  );
}

function drawText(random: Random, size: number): string {
  let text = '';
  for (let i = 0; i < size; i++)
    text += String.fromCharCode(random.chance(0.02) ? random.between(0xa1, 0xff) : random.between(0x21, 0x7e));
  return text;
}

function inChunks(random: Random, body: Buffer): Buffer {
  const pieces: Buffer[] = [];
  const most = random.pick([1, 10, 1000, 20_000, 1_048_576]);
  for (let at = 0; at < body.length;) {
    // One byte a chunk for a while, not for a megabyte.
    const size = Math.min(body.length - at, random.between(1, pieces.length > 300 ? 1_048_576 : most));
    const extension = random.chance(0.02) ? ';x=y' : '';
    pieces.push(Buffer.from(`${size.toString(16)}${extension}\r\n`), body.subarray(at, at + size), Buffer.from('\r\n'));
    at += size;
  }
  pieces.push(Buffer.from(random.chance(0.05) ? '0\r\nX-Trailer: dropped\r\n\r\n' : '0\r\n\r\n'));
  return Buffer.concat(pieces);
}

/** Cuts `bytes` anywhere, most of all where heads are, and draws how long the pieces wait. */
export function cut(random: Random, bytes: Buffer): Pieces {
  const places = new Set<number>();
  switch (random.below(5)) {
    case 0:
      break;
    case 1:
      for (let at = 1448; at < bytes.length && places.size < 8; at += 1448) places.add(at);
      break;
    case 2:
      for (let at = 1; at < Math.min(bytes.length, random.between(10, 120)); at++) places.add(at);
      break;
    default:
      for (let i = random.between(1, 6); i > 0; i--)
        places.add(random.chance(0.5) ? random.below(Math.min(bytes.length, 600) + 1) : random.below(bytes.length + 1));
  }
  const ends = [...places].filter((at) => at > 0 && at < bytes.length).toSorted((a, b) => a - b);
  return [...ends, bytes.length].map((end, i) => ({
    bytes: bytes.subarray(ends[i - 1] ?? 0, end),
    waitMs: random.pick([0, TURN, TURN, TURN, random.between(1, 3)]),
  }));
}
