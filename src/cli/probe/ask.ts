// Asks an upstream one question with exact bytes. node:http writes a request target as it is given; a URL object would
// resolve the very dots and escapes that are asked about. Each question has a connection of its own, so that an answer
// that breaks the connection breaks nothing else.
import type { IncomingMessage } from 'node:http';
import { http } from '../../host/node-http.ts';
import { request as requestHttps } from 'node:https';
import type { Schedule } from '../../host/clock.ts';

export type ProbeResponse =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers: IncomingMessage['headers'];
      readonly body: string;
    }
  /** No response that could be read. */
  | { readonly kind: 'none'; readonly detail: string };

export type Ask = (method: string, target: string) => Promise<ProbeResponse>;

type AskOptions = {
  readonly upstream: URL;
  /** Lower-cased names; `host` is among them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Number of bytes of a body that are read and compared. */
  readonly bodyLimit: number;
  readonly schedule: Schedule;
};

export function createAsk({ upstream, headers, timeoutMs, bodyLimit, schedule }: AskOptions): Ask {
  const secure = upstream.protocol === 'https:';
  const open = secure ? requestHttps : http.request;
  const hostname = upstream.hostname.replace(/^\[|\]$/g, '');
  return (method, target) =>
    new Promise((resolve) => {
      let answer: IncomingMessage | undefined;
      let body = '';
      let read = 0;
      const request = open({
        host: hostname,
        port: upstream.port || (secure ? 443 : 80),
        method,
        path: target,
        headers: { ...headers, connection: 'close' },
        setHost: false,
        agent: false,
      });
      const end = (detail: string): void => {
        cancel();
        // The promise resolves before the body ends too: an event stream never ends, and its head says enough.
        resolve(
          answer === undefined
            ? { kind: 'none', detail }
            : { kind: 'answer', status: answer.statusCode ?? 0, headers: answer.headers, body },
        );
        request.destroy();
      };
      const cancel = schedule(timeoutMs, () => end('no answer in time'));
      request.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
      request.on('close', () => end('the connection was closed'));
      request.on('upgrade', (_response, socket) => {
        socket.destroy();
        end('an upgrade that was not asked for');
      });
      request.on('response', (response) => {
        answer = response;
        response.setEncoding('latin1');
        response.on('data', (chunk: string) => {
          body += chunk.slice(0, bodyLimit - read);
          read += chunk.length;
          if (read > bodyLimit) end('');
        });
        response.on('end', () => end(''));
        response.on('error', () => end(''));
      });
      request.end();
    });
}
