// The transport on node:http: one keep-alive pool of connections to one upstream. Node's strict parser reads the answers.
// A request is sent a second time only where nobody can tell the difference: an idempotent method without a body, on a
// pooled connection that the upstream closed before it answered with a single byte.
import {
  Agent,
  request as requestHttp,
  type ClientRequest,
  type IncomingMessage,
  type InformationEvent,
} from 'node:http';
import { Agent as SecureAgent, request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import type { Transport, UpstreamCall, UpstreamFailure, UpstreamListener, UpstreamRequest } from './transport.ts';

export type UpstreamTimeouts = {
  /** Until a connection is there, waiting for a free one included. */
  readonly connectMs: number;
  /** From the request's last byte to the answer's head. */
  readonly headersMs: number;
  /** Between two bytes of a body, either way. */
  readonly idleMs: number;
};

export type PoolOptions = {
  readonly upstream: URL;
  readonly timeouts: UpstreamTimeouts;
  readonly maxSockets: number;
};

// Below the 5 s after which Node and uvicorn close an idle connection without announcing it: a connection that we close
// first is never found dead.
const POOL_IDLE_MS = 4000;
const ANSWER_HEADERS_BYTES = 64 * 1024;
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

export function createPool({ upstream, timeouts, maxSockets }: PoolOptions): Transport {
  const secure = upstream.protocol === 'https:';
  const open = secure ? requestHttps : requestHttp;
  const settings = { keepAlive: true, maxSockets, scheduling: 'lifo', timeout: POOL_IDLE_MS } as const;
  const pooled = secure ? new SecureAgent(settings) : new Agent(settings);
  // For upgrades and second attempts: connections that nobody used before and nobody uses after.
  const fresh = secure ? new SecureAgent({ keepAlive: false }) : new Agent({ keepAlive: false });
  const fixed = {
    protocol: upstream.protocol,
    host: upstream.hostname.replace(/^\[|\]$/g, ''),
    port: upstream.port || (secure ? 443 : 80),
    setDefaultHeaders: false,
    httpValidation: 'strict',
    maxHeaderSize: ANSWER_HEADERS_BYTES,
  } as const;

  function send(order: UpstreamRequest, listener: UpstreamListener): UpstreamCall {
    let request: ClientRequest | undefined;
    let answer: IncomingMessage | undefined;
    let socket: Socket | undefined;
    let bytesBefore = 0;
    let connecting: NodeJS.Timeout | undefined;
    let over = false;

    attempt(pooled);
    return { pause, resume, abort };

    function attempt(agent: Agent): void {
      try {
        request = open({ ...fixed, agent, method: order.method, path: order.target, headers: order.headers });
      } catch (error) {
        // A name, a value or a target that cannot be written.
        process.nextTick(
          fail,
          'upstream_unreachable',
          error instanceof Error ? error.message : 'the request is invalid',
        );
        return;
      }
      if (!request.reusedSocket) {
        connecting = setTimeout(fail, timeouts.connectMs, 'upstream_timeout', 'no connection to the upstream in time');
      }
      request.on('socket', onSocket);
      request.on('information', onInformation);
      request.on('response', onAnswer);
      request.on('upgrade', onUpgrade);
      request.on('error', onError);
      request.on('close', onClose);
      if (order.body === undefined) {
        request.end();
      } else {
        request.on('finish', onSent);
        order.body.pipe(request);
        // A client may wait for the answer to its head before it sends a body.
        process.nextTick(flushHead, order.body, request);
      }
    }

    function onSocket(given: Socket): void {
      if (over) return;
      socket = given;
      bytesBefore = given.bytesRead;
      given.on('timeout', onTimeout);
      if (!given.connecting) {
        onConnected();
        return;
      }
      given.setTimeout(0);
      given.once(secure ? 'secureConnect' : 'connect', onConnected);
    }

    function onConnected(): void {
      clearTimeout(connecting);
      const uploading = order.body !== undefined && request?.writableFinished !== true;
      if (!over) socket?.setTimeout(uploading ? timeouts.idleMs : timeouts.headersMs);
    }

    function onSent(): void {
      if (!over && answer === undefined) socket?.setTimeout(timeouts.headersMs);
    }

    function onTimeout(): void {
      // The upstream took everything that came: it is the client who stopped, and whoever listens to it ends it.
      const { body } = order;
      if (body !== undefined && answer === undefined && !body.complete && socket?.writableLength === 0) return;
      fail('upstream_timeout', answer === undefined ? 'no answer in time' : 'the answer stopped in the middle');
    }

    function onInformation(info: InformationEvent): void {
      if (!over && info.statusCode !== 100) listener.onInformation(info.statusCode, info.rawHeaders);
    }

    function onAnswer(message: IncomingMessage): void {
      if (over) {
        message.resume();
        return;
      }
      const status = message.statusCode ?? 0;
      // A 101 without the headers of an upgrade arrives here as well.
      if (status < 200 || status > 999) {
        fail('upstream_unreachable', `an answer with the status ${status}`);
        return;
      }
      answer = message;
      socket?.setTimeout(timeouts.idleMs);
      message.on('error', onCut);
      message.on('end', onWhole);
      message.on('data', listener.onData);
      listener.onHead(status, message.rawHeaders);
    }

    function onCut(): void {
      fail('upstream_unreachable', 'the upstream died in the middle of its answer');
    }

    function onWhole(): void {
      if (over) return;
      if (answer?.complete !== true) {
        onCut();
        return;
      }
      finish();
      // It answered without reading everything: the rest must not be taken for the next request.
      if (request?.writableFinished !== true) request?.destroy();
      listener.onEnd();
    }

    function onUpgrade(message: IncomingMessage, upgraded: Socket, head: Buffer): void {
      if (over || !order.upgrade) {
        upgraded.destroy();
        fail('upstream_unreachable', 'the upstream switched protocols unasked');
        return;
      }
      finish();
      upgraded.setTimeout(0);
      listener.onUpgrade(message.rawHeaders, upgraded, head);
    }

    function onError(this: ClientRequest, error: NodeJS.ErrnoException): void {
      // What comes after an answer that was whole concerns nobody: the connection is gone, the answer stays.
      if (over || this !== request || answer?.complete === true) return;
      if (isRepeatable(order) && request.reusedSocket && isStale(error) && socket?.bytesRead === bytesBefore) {
        socket.removeListener('timeout', onTimeout);
        attempt(fresh);
        return;
      }
      fail('upstream_unreachable', `${error.code ?? 'error'}: ${error.message}`);
    }

    function onClose(this: ClientRequest): void {
      if (this === request && answer === undefined)
        fail('upstream_unreachable', 'the connection closed without an answer');
    }

    function pause(): void {
      if (over) return;
      socket?.setTimeout(0);
      answer?.pause();
    }

    function resume(): void {
      if (over || answer === undefined) return;
      socket?.setTimeout(timeouts.idleMs);
      answer.resume();
    }

    function abort(): void {
      if (over) return;
      finish();
      request?.destroy();
    }

    function fail(code: UpstreamFailure['code'], detail: string): void {
      if (over) return;
      finish();
      request?.destroy();
      listener.onFailure({ code, detail });
    }

    function finish(): void {
      over = true;
      clearTimeout(connecting);
      socket?.removeListener('timeout', onTimeout);
      if (order.body !== undefined && request !== undefined) order.body.unpipe(request);
    }
  }

  return {
    send,
    close: () => {
      pooled.destroy();
      fresh.destroy();
    },
  };
}

function flushHead(body: IncomingMessage, request: ClientRequest): void {
  if (!body.readableDidRead && !request.destroyed) request.flushHeaders();
}

function isRepeatable(order: UpstreamRequest): boolean {
  return order.body === undefined && !order.upgrade && REPEATABLE.has(order.method);
}

function isStale(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ECONNRESET' || error.code === 'EPIPE';
}
