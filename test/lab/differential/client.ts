// A client of the differential test: sends its bursts, cut as they were drawn, and reads what comes back.
import { openRaw, type RawAnswer, type RawClient } from '../../support/raw-client.ts';
import { cut, type Burst, type Exchange } from './plan.ts';
import { writePieces } from './upstream.ts';

/** What the client got for one exchange. */
export type Got =
  | { readonly kind: 'answer'; readonly answer: RawAnswer; readonly informational: readonly number[] }
  /** The connection ended first; `rest`: what came behind the last whole answer. */
  | { readonly kind: 'cut'; readonly rest: Buffer }
  /** The client left, or an answer before this one ended the connection. */
  | { readonly kind: 'left' };

export type ClientOptions = {
  readonly port: number;
  readonly target: (token: string) => string;
  /** Lines that the front needs for this exchange. */
  readonly lines: (exchange: Exchange) => Promise<readonly string[]>;
  readonly onGot: (exchange: Exchange, got: Got) => void;
};

export async function runClient(bursts: readonly Burst[], options: ClientOptions): Promise<void> {
  let client: RawClient | undefined;
  for (const burst of bursts) {
    client ??= await openRaw(options.port);
    if (await runBurst(client, burst, options)) continue;
    client.close();
    client = undefined;
  }
  client?.close();
}

/** Whether the connection serves another burst. */
async function runBurst(client: RawClient, burst: Burst, options: ClientOptions): Promise<boolean> {
  const { exchanges, random, leaves } = burst;
  const heads: Buffer[] = [];
  for (const exchange of exchanges) heads.push(headOf(exchange, options, await options.lines(exchange)));
  const [first] = exchanges;
  const [head] = heads;
  const bytes = Buffer.concat(exchanges.flatMap((exchange, i) => [heads[i] ?? Buffer.alloc(0), exchange.coded]));
  const from = client.socket.bytesRead;
  let sending: Promise<void>;
  if (leaves?.when === 'sending') {
    const end = Math.floor(bytes.length * leaves.share);
    await writePieces(client.socket, cut(random, bytes.subarray(0, end)));
    await settled();
    for (const exchange of exchanges) options.onGot(exchange, { kind: 'left' });
    return false;
  }
  if (first?.expects === true && head !== undefined) {
    sending = writePieces(client.socket, cut(random, head))
      .then(() => client.until('HTTP/1.1 ', from))
      .then(() => writePieces(client.socket, cut(random, first.coded)));
  } else {
    sending = writePieces(client.socket, cut(random, bytes));
  }
  sending.catch(() => undefined);
  if (leaves?.when === 'reading') {
    await Promise.race([client.until('HTTP/1.1 ', from).catch(() => undefined), sending]);
    for (const exchange of exchanges) options.onGot(exchange, { kind: 'left' });
    return false;
  }
  let open = true;
  for (const exchange of exchanges) {
    const got: Got = open ? await readAnswer(client, exchange) : { kind: 'left' };
    options.onGot(exchange, got);
    open &&= got.kind === 'answer' && !closes(got.answer) && exchange.version === '1.1';
  }
  // A connection that is said to stay open takes all of what was being sent.
  if (open) await sending;
  return open && client.socket.writable;
}

async function readAnswer(client: RawClient, exchange: Exchange): Promise<Got> {
  const informational: number[] = [];
  try {
    for (;;) {
      const answer = await client.answer(exchange.method === 'HEAD');
      if (answer.status >= 200) {
        // Without a length only an orderly end makes it whole.
        if (answer.framing === 'close' && (await client.closed) === 'reset')
          return { kind: 'cut', rest: Buffer.alloc(0) };
        return { kind: 'answer', answer, informational };
      }
      informational.push(answer.status);
    }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    if (!text.startsWith('closed while waiting')) throw new Error(`${exchange.token}: ${text}`, { cause: error });
    return { kind: 'cut', rest: client.rest() };
  }
}

function headOf(exchange: Exchange, options: ClientOptions, lines: readonly string[]): Buffer {
  const { method, version, token } = exchange;
  const all = [`${method} ${options.target(token)} HTTP/${version}`, 'Host: h', ...exchange.lines, ...lines];
  return Buffer.from(`${all.join('\r\n')}\r\n\r\n`, 'latin1');
}

function closes({ headers, framing }: RawAnswer): boolean {
  return framing === 'close' || headers.some(([name, value]) => /^connection$/i.test(name) && /close/i.test(value));
}

/** What was sent is read before the client goes. */
async function settled(): Promise<void> {
  for (let i = 0; i < 4; i++) await new Promise(setImmediate);
}
