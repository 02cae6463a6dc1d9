// A wire between a proxy and a decision listener: bytes pass both ways as they are, and each question is noted with what it was
// answered. Questions of the shipped configurations have no body, and their answers come in order.
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export type DecisionTap = {
  readonly port: number;
  /** `METHOD TARGET` of every allow: the method that was asked about, and the target that was decided. */
  readonly allowed: readonly string[];
  /** The heads of the same, as they came: one line for each header. */
  readonly allows: readonly string[];
  readonly asked: () => number;
  readonly close: () => Promise<void>;
};

const METHOD = /^x-(?:original|forwarded)-method: *(.*?) *$/im;

export async function startTap(decision: number): Promise<DecisionTap> {
  const allowed: string[] = [];
  const allows: string[] = [];
  const open = new Set<Socket>();
  let asked = 0;
  const server = createServer((client) => {
    const methods: string[] = [];
    const upstream = connect(decision, '127.0.0.1');
    const readQuestion = heads((head) => {
      asked++;
      methods.push(METHOD.exec(head)?.[1] ?? '');
    });
    const readAnswer = heads((head) => {
      const method = methods.shift();
      const target = /^tollgate-target: *(.*?) *$/im.exec(head)?.[1];
      const isAllow = head.startsWith('HTTP/1.1 200 ') && /^tollgate-decision: allow$/im.test(head);
      if (!isAllow) return;
      allowed.push(`${method} ${target}`);
      allows.push(head);
    });
    client.on('data', (bytes: Buffer) => {
      readQuestion(bytes);
      upstream.write(bytes);
    });
    upstream.on('data', (bytes: Buffer) => {
      readAnswer(bytes);
      client.write(bytes);
    });
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(from);
      from.on('error', () => to.destroy());
      from.on('end', () => to.end());
      from.on('close', () => {
        open.delete(from);
        to.destroy();
      });
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    ...{ allowed, allows },
    asked: () => asked,
    close: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Reads a stream of messages whose length, if any, is a Content-Length, and hands on each head. */
function heads(take: (head: string) => void): (bytes: Buffer) => void {
  let rest = '';
  let skip = 0;
  return (bytes) => {
    rest += bytes.toString('latin1');
    for (;;) {
      const skipped = Math.min(skip, rest.length);
      rest = rest.slice(skipped);
      skip -= skipped;
      const end = rest.indexOf('\r\n\r\n');
      if (skip > 0 || end < 0) return;
      const head = rest.slice(0, end).replaceAll('\r\n', '\n');
      rest = rest.slice(end + 4);
      skip = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      take(head);
    }
  };
}
