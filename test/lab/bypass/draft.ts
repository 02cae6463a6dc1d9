// A request before it is bytes: what mutators change, what a regression keeps and what shrinking takes parts off. Every
// string holds bytes (latin1); nothing is escaped or checked, because what no client would send is the point.

export type Draft = {
  readonly method: string;
  /** Path and query as they stand in the request line. */
  readonly target: string;
  /** With the space before it; empty for HTTP/0.9. */
  readonly version: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /** Bytes before the request line: a pipelined request, an empty line. */
  readonly before: string;
  /** Bytes after the body: a pipelined request. */
  readonly after: string;
  /** Writes: at once, in a few pieces, or byte by byte. */
  readonly writes: 'whole' | 'pieces' | 'bytes';
};

export const HOST = 'localhost';

export function draftOf(method: string, target: string, rest: Partial<Draft> = {}): Draft {
  return {
    method,
    target,
    version: ' HTTP/1.1',
    headers: [
      ['Host', HOST],
      ['Connection', 'close'],
    ],
    body: '',
    before: '',
    after: '',
    writes: 'whole',
    ...rest,
  };
}

export function bytesOf(draft: Draft): Buffer {
  const head = [
    `${draft.method} ${draft.target}${draft.version}`,
    ...draft.headers.map(([name, value]) => `${name}:${value === '' ? '' : ' '}${value}`),
  ];
  return Buffer.from(`${draft.before}${head.join('\r\n')}\r\n\r\n${draft.body}${draft.after}`, 'latin1');
}

/** The parts that differ from a plain request, for a report or a regression. */
export function describeDraft(draft: Draft): string {
  const plain = draftOf(draft.method, draft.target);
  const rest = Object.entries(draft).filter(
    ([key, value]) =>
      !['method', 'target'].includes(key) && JSON.stringify(value) !== JSON.stringify(plain[key as keyof Draft]),
  );
  return JSON.stringify([draft.method, draft.target, ...(rest.length === 0 ? [] : [Object.fromEntries(rest)])]);
}
