// An endpoint of webhooks: verifies what comes by the package of the specification, keeps what it took, and takes, refuses, cuts
// or stalls as it is told.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

export type Taken = {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
};
/** `forget`: it has the event, and the connection ends before it can say so. */
export type Verdict = 'take' | 'forget' | 'refuse' | 'cut' | 'stall' | 'gone';

export type WebhookReceiver = Awaited<ReturnType<typeof startWebhookReceiver>>;

/** `secrets`: all of them must have signed. `decide` is asked for each event that comes. */
export async function startWebhookReceiver(secrets: readonly string[], decide: () => Verdict) {
  const taken: Taken[] = [];
  const wrong: string[] = [];
  const stalled: ServerResponse[] = [];
  const read = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const parts: Buffer[] = [];
    for await (const part of req) parts.push(part as Buffer);
    const body = Buffer.concat(parts).toString();
    const headers = req.headers as Record<string, string>;
    for (const secret of secrets)
      try {
        new Webhook(secret).verify(body, headers);
      } catch (error) {
        wrong.push(`${String(error)} of ${body}`);
      }
    if (req.method !== 'POST' || headers['content-type'] !== 'application/json') wrong.push(`${req.method} ${req.url}`);
    if (!/^Tollgate\/\d/.test(headers['user-agent'] ?? '')) wrong.push(`user-agent ${headers['user-agent']}`);
    if (Buffer.byteLength(body) >= 16 * 1024) wrong.push('too large');
    const event: Taken = { id: headers['webhook-id'] ?? '', ...(JSON.parse(body) as Omit<Taken, 'id'>) };
    const verdict = decide();
    switch (verdict) {
      case 'take':
        taken.push(event);
        res.writeHead(204).end();
        return;
      case 'forget':
        taken.push(event);
        req.socket.destroy();
        return;
      case 'refuse':
        res.writeHead(500).end('out of memory');
        return;
      case 'gone':
        res.writeHead(410).end();
        return;
      case 'cut':
        req.socket.destroy();
        return;
      case 'stall':
        stalled.push(res);
        return;
      default:
        verdict satisfies never;
    }
  };
  // A sender that is killed in the middle of a body leaves nothing to judge.
  const server = createServer((req, res) => void read(req, res).catch(() => undefined));
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/in?token=1`,
    ...{ taken, wrong, stalled },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
