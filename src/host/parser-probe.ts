// Says whether this process's HTTP parser is lenient, by what it does: Node takes the option from its command line, from
// NODE_OPTIONS in any quoting, from files for the environment and from configuration files, so reading names would always
// miss one. Nothing leaves the process: the bytes are handed to a server that never listens.
import { Duplex } from 'node:stream';
import { http } from './node-http.ts';

/** Two framings at once: what a strict parser must refuse, because the next server may choose the other (RFC 9112, 6.1). */
const AMBIGUOUS = 'GET / HTTP/1.1\r\nHost: probe\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';

/** True where the ambiguous request was taken, and also if nothing is known: the caller fails closed. */
export function isParserLenient(): Promise<boolean> {
  return new Promise((resolve) => {
    const server = http.createServer((_req, res) => {
      resolve(true);
      res.destroy();
    });
    const connection = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
    server.on('clientError', () => {
      resolve(false);
      connection.destroy();
    });
    connection.on('close', () => resolve(true));
    server.emit('connection', connection);
    connection.push(AMBIGUOUS);
    connection.push(null);
  });
}
