// What the bench's upstream answers and what it says it saw: the same words for the upstream, for whoever checks that
// answers cross a proxy unharmed, and for peers that have to send the same bytes.

/** 197 bytes, the size of a small answer of an API. */
export const UPSTREAM_BODY = JSON.stringify({
  id: 'a3f1c9d2',
  status: 'ready',
  items: [17, 23, 42, 64, 99],
  note: 'The quick brown fox jumps over the lazy dog, and nobody is charged for looking at it.',
  next: '/v1/items?cursor=bmV4dA',
}).padEnd(197, ' ');

/** The same as an answer that nothing stands behind. */
export const CONSTANT_ANSWER = { status: 200, headers: ['Content-Type', 'application/json'], body: UPSTREAM_BODY };

/** What a small POST carries. */
export const POST_BODY = JSON.stringify({
  name: 'bench',
  quantity: 3,
  tags: ['a', 'b', 'c'],
  comment: 'x'.repeat(120),
});

export const DOWNLOAD_BYTES = 10 * 1024 * 1024;
export const DOWNLOAD_PATH = '/download/10mb';

/** 10 MB in which no two kilobytes are alike, so that a lost or doubled piece shows. */
export function DOWNLOAD(): Buffer {
  const body = Buffer.alloc(DOWNLOAD_BYTES);
  for (let at = 0; at < body.length; at += 4) body.writeUInt32LE(Math.imul(at, 0x9e3779b1) >>> 0, at);
  return body;
}

/** A request with this header is hashed by the upstream; the others are not, because that costs the load's core. */
export const HASH_HEADER = 'x-bench-hash';

export type Seen = {
  readonly requests: number;
  readonly bodyBytes: number;
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** SHA-256 of the last request's body, where it was asked for. */
  readonly hash: string | undefined;
};
