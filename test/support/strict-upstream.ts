// An upstream that is only a socket and forgives nothing: it records every byte, reads requests by RFC 9112 to the letter
// and writes down whatever a careful sender would not have sent (`violations`): a second framing, a chunk extension, a
// trailer, a request before the last one was answered, a byte behind a handshake, a request on a connection that was
// given up. It answers with whatever a script says. It never repairs what it reads.
import { createServer, type Socket } from 'node:net';

export type UpstreamConnection = {
  /** From 1, in the order of acceptance. */
  readonly number: number;
  readonly socket: Socket;
  /** Everything that came in, latin1. */
  readonly bytes: () => string;
  readonly closed: boolean;
  readonly requests: readonly StrictRequest[];
  /** From here on no request may come on this connection any more. */
  readonly spoil: () => void;
  /** From here on the bytes that come in are no HTTP. */
  readonly tunnel: (onBytes: (bytes: Buffer) => void) => void;
};

export type StrictRequest = {
  readonly method: string;
  readonly target: string;
  /** Name, value pairs as they arrived. */
  readonly headers: readonly (readonly [string, string])[];
  /** With its empty line. */
  readonly head: string;
  readonly framing: 'none' | 'length' | 'chunked';
  readonly connection: UpstreamConnection;
  body: Buffer;
  whole: boolean;
};

export type StrictScript = (request: StrictRequest) => void;

export type StrictUpstream = {
  readonly url: URL;
  readonly requests: readonly StrictRequest[];
  readonly connections: readonly UpstreamConnection[];
  /** In words; has to be empty at the end of every test. */
  readonly violations: string[];
  /** What is done with a request that was read whole. */
  readonly script: (script: StrictScript) => void;
  /** What is done as soon as a head was read. */
  readonly onHead: (script: StrictScript | undefined) => void;
  /** What is done with a connection that was just accepted. */
  readonly onConnection: (act: ((connection: UpstreamConnection) => void) | undefined) => void;
  readonly close: () => Promise<void>;
};

const REQUEST_LINE = /^([A-Z]+) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
const HEADER_LINE = /^([A-Za-z0-9-]+): ?([\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;
const CHUNK_SIZE = /^[0-9A-Fa-f]{1,8}$/;
const LENGTH = /^(?:0|[1-9]\d{0,15})$/;

type Reading = {
  buffer: Buffer;
  all: Buffer[];
  pending: StrictRequest | undefined;
  /** `socket.bytesWritten` when the last request began. */
  answeredFrom: number;
  spoiled: boolean;
  lost: boolean;
  onTunnel: ((bytes: Buffer) => void) | undefined;
};

export async function startStrictUpstream(initial: StrictScript): Promise<StrictUpstream> {
  const requests: StrictRequest[] = [];
  const connections: UpstreamConnection[] = [];
  const violations: string[] = [];
  let script = initial;
  let headScript: StrictScript | undefined;
  let connectionScript: ((connection: UpstreamConnection) => void) | undefined;

  const server = createServer({ allowHalfOpen: false, noDelay: true }, (socket) => {
    const reading: Reading = {
      buffer: Buffer.alloc(0),
      all: [],
      pending: undefined,
      answeredFrom: -1,
      spoiled: false,
      lost: false,
      onTunnel: undefined,
    };
    const own: StrictRequest[] = [];
    const connection: UpstreamConnection = {
      number: connections.length + 1,
      socket,
      bytes: () => Buffer.concat(reading.all).toString('latin1'),
      get closed() {
        return socket.destroyed;
      },
      requests: own,
      spoil: () => void (reading.spoiled = true),
      tunnel: (onBytes) => void (reading.onTunnel = onBytes),
    };
    connections.push(connection);
    const wrong = (what: string): void => {
      reading.lost = true;
      violations.push(`connection ${connection.number}: ${what}: ${JSON.stringify(connection.bytes().slice(-300))}`);
    };

    const readHead = (): StrictRequest | undefined => {
      const end = reading.buffer.indexOf('\r\n\r\n');
      if (end < 0) return undefined;
      const head = reading.buffer.toString('latin1', 0, end + 4);
      reading.buffer = reading.buffer.subarray(end + 4);
      const [line = '', ...lines] = head.slice(0, -4).split('\r\n');
      const [, method, target] = REQUEST_LINE.exec(line) ?? [];
      if (method === undefined || target === undefined) wrong(`the request line ${JSON.stringify(line)}`);
      const headers = lines.map((text): readonly [string, string] => {
        const [, name, value = ''] = HEADER_LINE.exec(text) ?? [];
        if (name === undefined) wrong(`the header line ${JSON.stringify(text)}`);
        return [name ?? '', value];
      });
      const all = (name: string): string[] =>
        headers.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value);
      const lengths = all('content-length');
      const codings = all('transfer-encoding');
      if (all('host').length !== 1) wrong('not exactly one Host');
      if (lengths.length + codings.length > 1) wrong('more than one framing');
      if (lengths.some((length) => !LENGTH.test(length))) wrong('a Content-Length that is no plain number');
      if (codings.some((coding) => coding !== 'chunked')) wrong('a coding other than chunked');
      for (const name of ['te', 'trailer', 'expect', 'keep-alive', 'proxy-connection', 'http2-settings'])
        if (all(name).length > 0) wrong(`a hop-by-hop ${name}`);
      const upgrades = all('upgrade').length > 0;
      const connectionHeader = all('connection');
      if (upgrades !== connectionHeader.some((value) => /^upgrade$/i.test(value))) wrong('Upgrade without Connection');
      if (
        connectionHeader.length > 1 ||
        connectionHeader.some((value) => !/^(?:keep-alive|close|upgrade)$/i.test(value))
      )
        wrong(`Connection: ${connectionHeader.join(' | ')}`);
      const framing = codings.length > 0 ? 'chunked' : lengths.length > 0 ? 'length' : 'none';
      if (upgrades && framing !== 'none') wrong('a handshake with a body');
      if (reading.spoiled) wrong('a request on a connection that was given up');
      return {
        method: method ?? '',
        target: target ?? '',
        headers,
        head,
        framing,
        connection,
        body: Buffer.alloc(0),
        whole: false,
      };
    };

    /** Whether the body of `request` is whole now. */
    const readBody = (request: StrictRequest): boolean => {
      switch (request.framing) {
        case 'none':
          return true;
        case 'length': {
          const wanted = Number(request.headers.find(([name]) => name.toLowerCase() === 'content-length')?.[1]);
          const left = wanted - request.body.length;
          request.body = Buffer.concat([request.body, reading.buffer.subarray(0, left)]);
          reading.buffer = reading.buffer.subarray(left);
          return request.body.length === wanted;
        }
        case 'chunked':
          return readChunks(request);
        default:
          return request.framing satisfies never;
      }
    };

    const readChunks = (request: StrictRequest): boolean => {
      for (;;) {
        const line = reading.buffer.indexOf('\r\n');
        if (line < 0) return false;
        const text = reading.buffer.toString('latin1', 0, line);
        if (!CHUNK_SIZE.test(text)) wrong(`the chunk size ${JSON.stringify(text)}`);
        const size = Number.parseInt(text, 16);
        const end = line + 2 + size;
        if (reading.lost || reading.buffer.length < end + 2) return false;
        if (reading.buffer.toString('latin1', end, end + 2) !== '\r\n')
          wrong('no line end after a chunk, or a trailer');
        request.body = Buffer.concat([request.body, reading.buffer.subarray(line + 2, end)]);
        reading.buffer = reading.buffer.subarray(end + 2);
        if (size === 0) return true;
      }
    };

    socket.on('error', () => undefined);
    socket.on('data', (data: Buffer) => {
      reading.all.push(data);
      if (reading.onTunnel !== undefined) {
        reading.onTunnel(data);
        return;
      }
      reading.buffer = Buffer.concat([reading.buffer, data]);
      while (reading.buffer.length > 0 && !reading.lost) {
        if (reading.pending === undefined) {
          if (socket.bytesWritten === reading.answeredFrom) wrong('bytes before the last request was answered');
          const next = readHead();
          if (next === undefined) return;
          reading.pending = next;
          reading.answeredFrom = socket.bytesWritten;
          requests.push(next);
          own.push(next);
          headScript?.(next);
        }
        const request = reading.pending;
        if (reading.lost || !readBody(request)) return;
        request.whole = true;
        reading.pending = undefined;
        // What follows in the same packet was sent before there could be an answer, unless that came early.
        if (reading.buffer.length > 0 && socket.bytesWritten === reading.answeredFrom)
          wrong('bytes behind a request in the same packet');
        script(request);
      }
    });
    connectionScript?.(connection);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 1024, resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');

  return {
    url: new URL(`http://127.0.0.1:${address.port}`),
    requests,
    connections,
    violations,
    script: (next) => void (script = next),
    onHead: (next) => void (headScript = next),
    onConnection: (next) => void (connectionScript = next),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const { socket } of connections) socket.destroy();
      }),
  };
}
