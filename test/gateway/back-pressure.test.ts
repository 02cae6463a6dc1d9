// Bodies that are larger than memory may grow, both ways, and clients that do not read.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { startSmallGateway, type SmallGateway } from '../support/small-gateway.ts';
import { createStages, GET, head } from '../support/stages.ts';

const { onEnd } = createStages();

describe('back-pressure', () => {
  const SIZE = 256 * 1024 * 1024;
  const PIECE = Buffer.alloc(1024 * 1024, 'x');

  /** Megabytes of memory taken at most while `work` ran, over what was taken before. */
  async function growth(work: () => Promise<void>): Promise<number> {
    const before = process.memoryUsage().rss;
    let peak = before;
    const timer = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss);
    }, 10);
    await work();
    clearInterval(timer);
    return (peak - before) / 1024 / 1024;
  }

  async function writeAll(socket: NodeJS.WritableStream): Promise<void> {
    for (let sent = 0; sent < SIZE; sent += PIECE.length) if (!socket.write(PIECE)) await once(socket, 'drain');
  }

  it('behaviour: an answer of 256 MB passes in flat memory', async () => {
    const server = createServer((_, res) => {
      res.writeHead(200, { 'Content-Length': SIZE });
      void writeAll(res).then(() => res.end());
    });
    const { gateway } = await behind(server);
    let received = 0;
    const grown = await growth(async () => {
      const socket = connect(gateway.port, '127.0.0.1');
      socket.on('data', (chunk: Buffer) => {
        received += chunk.length;
      });
      socket.write('GET /free/a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
      await once(socket, 'close');
    });
    expect(received).toBeGreaterThan(SIZE);
    expect(grown).toBeLessThan(160);
  });

  it('behaviour: an upload of 256 MB passes in flat memory', async () => {
    let received = 0;
    const server = createServer((req, res) => {
      req.on('data', (chunk: Buffer) => {
        received += chunk.length;
      });
      req.on('end', () => res.end('done'));
    });
    const { gateway } = await behind(server);
    const grown = await growth(async () => {
      const socket = connect(gateway.port, '127.0.0.1');
      socket.write(head('POST', `Content-Length: ${SIZE}`, 'Connection: close'));
      await writeAll(socket);
      socket.resume();
      await once(socket, 'close');
    });
    expect(received).toBe(SIZE);
    expect(grown).toBeLessThan(160);
  });

  it('behaviour: a client that does not read stops the upstream', async () => {
    let written = 0;
    const server = createServer((_, res) => {
      const more = (): void => {
        while (written < SIZE) {
          written += PIECE.length;
          if (!res.write(PIECE)) {
            res.once('drain', more);
            return;
          }
        }
      };
      more();
    });
    const { gateway } = await behind(server);
    const socket = connect(gateway.port, '127.0.0.1');
    onEnd(() => socket.destroy());
    socket.pause();
    socket.write(GET);
    let last = -1;
    await vi.waitFor(
      () => {
        const now = written;
        const stands = now > 0 && now === last;
        last = now;
        if (!stands) throw new Error('still writing');
      },
      { interval: 100, timeout: 30_000 },
    );
    expect(written).toBeLessThan(SIZE / 4);
  });

  async function behind(server: ReturnType<typeof createServer>): Promise<{ gateway: SmallGateway }> {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onEnd(() => {
      server.closeAllConnections();
      server.close();
    });
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const gateway = await startSmallGateway({ upstream: new URL(`http://127.0.0.1:${port}`) });
    onEnd(gateway.close);
    return { gateway };
  }
});
