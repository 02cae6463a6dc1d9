// Sends one POST to a place out in the internet, which somebody else runs: to public addresses only, and to the very address
// that was judged. No redirect is followed, no proxy of the environment asked, and the connection is used once.
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import type { Schedule } from './clock.ts';
import { messageOf } from './error-message.ts';
import { http } from './node-http.ts';
import { isPublicAddress } from './public-address.ts';

export type PublicPostRequest = {
  /** http or https, without user, password and fragment. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Milliseconds from now to the head of the answer. */
  readonly timeoutMs: number;
  /** Loopback and private addresses will do as well. */
  readonly allowPrivate: boolean;
};
export type PublicPostAnswer =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly retryAfter: string | undefined;
      readonly beginning: string;
    }
  | { readonly kind: 'unanswered'; readonly reason: string };

type ResolvedAddress = { readonly address: string; readonly family: number };
export type PublicPostOptions = {
  /** All addresses of a name. */
  readonly resolve: (name: string) => Promise<readonly ResolvedAddress[]>;
  readonly schedule: Schedule;
  /** Certificates to trust in place of the system's. */
  readonly ca?: string | undefined;
};
/** Never rejects; an aborted one is unanswered. */
export type PublicPost = (request: PublicPostRequest, signal: AbortSignal) => Promise<PublicPostAnswer>;

/** Bytes of an answer that are read, and that are told. */
const MOST_READ = 64 * 1024;
const TOLD = 256;
/** Milliseconds that the body of an answer may take: its status is known by then. */
const BODY_MS = 5_000;

export function createPublicPost({ resolve, schedule, ca }: PublicPostOptions): PublicPost {
  return async (request, signal) => {
    const late = Promise.withResolvers<string>();
    const cancel = schedule(request.timeoutMs, () =>
      late.resolve(`no answer came within ${request.timeoutMs / 1000} s`),
    );
    const leave = (): void => late.resolve('the attempt was broken off');
    signal.addEventListener('abort', leave);
    if (signal.aborted) leave();
    try {
      const url = new URL(request.url);
      const found = await Promise.race([addressesOf(url, request.allowPrivate, resolve), late.promise]);
      if (typeof found === 'string') return { kind: 'unanswered', reason: found };
      return await exchange(request, { url, addresses: found, late: late.promise, cancel, schedule, ca });
    } catch (error) {
      return { kind: 'unanswered', reason: messageOf(error) };
    } finally {
      cancel();
      signal.removeEventListener('abort', leave);
    }
  };
}

/** The addresses to connect to, or why there are none. */
async function addressesOf(
  url: URL,
  allowPrivate: boolean,
  resolve: PublicPostOptions['resolve'],
): Promise<readonly ResolvedAddress[] | string> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const family = isIP(host);
  const addresses = family === 0 ? await resolve(host).catch(() => []) : [{ address: host, family }];
  if (addresses.length === 0) return `the name ${host} has no address`;
  const wrong = allowPrivate ? undefined : addresses.find(({ address }) => !isPublicAddress(address));
  return wrong === undefined ? addresses : `its address ${wrong.address} is not a public one`;
}

type ExchangeDeps = Pick<PublicPostOptions, 'schedule' | 'ca'> & {
  readonly url: URL;
  readonly addresses: readonly ResolvedAddress[];
  /** Resolves with the reason to wait no longer for the head. */
  readonly late: Promise<string>;
  /** There is a head: from now on nothing is late. */
  readonly cancel: () => void;
};

function exchange(
  { headers, body }: PublicPostRequest,
  { url, addresses, late, cancel, schedule, ca }: ExchangeDeps,
): Promise<PublicPostAnswer> {
  return new Promise((resolve) => {
    let outgoing: ClientRequest | undefined;
    const end = (answer: PublicPostAnswer): void => {
      resolve(answer);
      outgoing?.destroy();
    };
    const options: RequestOptions = {
      method: 'POST',
      headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
      // A name is not resolved again: between two looks its owner may have moved it.
      lookup: lookupOf(addresses),
    };
    const { Agent, request } = url.protocol === 'https:' ? process.getBuiltinModule('node:https') : http;
    const agent = new Agent({ keepAlive: false, ...(ca === undefined ? {} : { ca }) });
    outgoing = request(url, { ...options, agent }, (response) => {
      cancel();
      void read(response, schedule).then(end);
    });
    outgoing.on('error', (error) => end({ kind: 'unanswered', reason: reasonOf(error) }));
    void late.then((reason) => end({ kind: 'unanswered', reason }));
    outgoing.end(body);
  });
}

function lookupOf(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_name, { all }, answer) => {
    const [first] = addresses;
    if (all === true) answer(null, [...addresses]);
    else answer(null, first?.address ?? '', first?.family);
  };
}

/** Reads what is told of an answer, and no more than is read of any. */
function read(response: IncomingMessage, schedule: Schedule): Promise<PublicPostAnswer> {
  return new Promise((resolve) => {
    const kept: Buffer[] = [];
    let size = 0;
    const end = (): void => {
      cancel();
      const beginning = Buffer.concat(kept).subarray(0, TOLD).toString('utf8').replaceAll('\0', '\uFFFD');
      const { statusCode = 0, headers } = response;
      resolve({ kind: 'answered', status: statusCode, retryAfter: headers['retry-after'], beginning });
    };
    const cancel = schedule(BODY_MS, end);
    response.on('data', (chunk: Buffer) => {
      if (size < TOLD) kept.push(chunk);
      size += chunk.length;
      if (size >= MOST_READ) end();
    });
    response.on('end', end);
    response.on('close', end);
    response.on('error', end);
  });
}

/** A word of the system for people; the connection's own words may repeat what was sent. */
function reasonOf(error: Error): string {
  const code = 'code' in error ? String(error.code) : '';
  const words: Readonly<Record<string, string>> = {
    ECONNREFUSED: 'the connection was refused',
    ECONNRESET: 'the connection was cut',
    ETIMEDOUT: 'the connection timed out',
    EHOSTUNREACH: 'there is no way to its address',
    ENETUNREACH: 'there is no way to its network',
  };
  return words[code] ?? (code === '' ? messageOf(error) : `the connection failed (${code})`);
}
