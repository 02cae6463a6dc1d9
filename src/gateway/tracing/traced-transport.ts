// The upstream's transport with a span of kind CLIENT for each call of a traced request, from its sending to the last byte
// of the answer. Calls of other requests pass untouched.
import type { Socket } from 'node:net';
import type { Transport, UpstreamListener, UpstreamRequest } from '../../http/transport.ts';
import { aboutCall, type CallSpan, type RequestSpan } from './request-span.ts';

/** Traces `transport`. `spanOf`: the span of the request that listens. */
export function traceTransport(
  transport: Transport,
  upstream: URL,
  spanOf: (listener: UpstreamListener) => RequestSpan | undefined,
): Transport {
  return {
    send: (request, listener, reserved) => {
      const call = beginCall(spanOf(listener), upstream, request);
      if (call === undefined) return transport.send(request, listener, reserved);
      return transport.send(request, new TracedListener(listener, call), reserved);
    },
    reserve: transport.reserve,
    close: transport.close,
  };
}

function beginCall(
  span: RequestSpan | undefined,
  upstream: URL,
  { method, target }: UpstreamRequest,
): CallSpan | undefined {
  if (span === undefined) return undefined;
  const [path = '/'] = target.split('?', 1);
  return span.beginWithin({
    kind: 'client',
    name: `${method} upstream`,
    attributes: [...aboutCall(method, upstream, path), ['network.protocol.version', '1.1']],
    spanId: span.upstreamId,
  });
}

/** Passes everything on, and ends the span with what comes last. */
class TracedListener implements UpstreamListener {
  private readonly listener: UpstreamListener;
  private readonly call: CallSpan;
  private status: number | undefined;

  constructor(listener: UpstreamListener, call: CallSpan) {
    this.listener = listener;
    this.call = call;
  }

  onInformation(status: number, headers: readonly string[]): void {
    this.listener.onInformation(status, headers);
  }

  onHead(status: number, headers: string[], followed: boolean): void {
    this.status = status;
    this.listener.onHead(status, headers, followed);
  }

  onData(chunk: Buffer): void {
    this.listener.onData(chunk);
  }

  onEnd(trailers: readonly string[]): void {
    this.call.end({ status: this.status });
    this.listener.onEnd(trailers);
  }

  onUpgrade(headers: string[], socket: Socket, head: Buffer): void {
    this.call.end({ status: 101 });
    this.listener.onUpgrade(headers, socket, head);
  }

  onFailure(failure: Parameters<UpstreamListener['onFailure']>[0]): void {
    this.call.end({ status: this.status, error: failure.code });
    this.listener.onFailure(failure);
  }
}
