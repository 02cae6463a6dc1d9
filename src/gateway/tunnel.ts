// The two sockets of a WebSocket. Its handshake passes the journey of any request, and the upstream's 101 is settled like
// any response; only then the sockets speak to each other. Nothing that the client sent behind its handshake reaches the
// upstream before that 101, so that no byte can be taken for a second request.
import type { Socket } from 'node:net';

/** The offer to the upstream: our own, because hop-by-hop headers end at the border (headers.ts). */
export const TUNNEL_OFFER: readonly string[] = ['Connection', 'Upgrade', 'Upgrade', 'websocket'];

/** Whether a 101 with `headers` switches to what was offered. */
export function acceptsTunnel(headers: readonly string[]): boolean {
  return headers.some((name, i) => i % 2 === 0 && isUpgrade(name) && isWebSocket(headers[i + 1]));
}

/** One side of a tunnel, and the bytes that it sent behind its handshake. */
type TunnelEnd = { readonly socket: Socket; readonly head: Buffer };

/**
 * Takes both sockets over. `headers`: of the 101 to the client. A tunnel without a byte for `idleMs` is closed. `handed`
 * tells once whether the client has the 101.
 */
export function openTunnel(
  client: TunnelEnd,
  upstream: TunnelEnd,
  headers: readonly string[],
  idleMs: number,
  handed: (delivered: boolean) => void,
): void {
  const close = (): void => {
    client.socket.destroy();
    upstream.socket.destroy();
  };
  let told = false;
  const tell = (delivered: boolean): void => {
    if (!told) handed(delivered);
    told = true;
  };
  client.socket.on('close', () => {
    tell(false);
    upstream.socket.destroySoon();
  });
  upstream.socket.on('close', () => client.socket.destroySoon());
  client.socket.setTimeout(idleMs, close);
  upstream.socket.setTimeout(idleMs, close);
  client.socket.write(switching(headers), 'latin1', (error) => tell(!error));
  if (upstream.head.length > 0) client.socket.write(upstream.head);
  if (client.head.length > 0) upstream.socket.write(client.head);
  upstream.socket.pipe(client.socket);
  client.socket.pipe(upstream.socket);
}

function switching(headers: readonly string[]): string {
  let text = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';
  for (let i = 0; i + 1 < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${text}\r\n`;
}

function isUpgrade(name: string): boolean {
  return name.toLowerCase() === 'upgrade';
}

function isWebSocket(value: string | undefined): boolean {
  return value?.toLowerCase() === 'websocket';
}
