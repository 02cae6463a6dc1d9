// Refuses to run if Node's HTTP parser was told to be lenient: every rule about framing would be void then. For every
// command that opens a listener. Names of options only make the message clear: the parser's behaviour counts.
import { EXIT, type ExitCode, type Io } from './command.ts';
import { Duplex } from 'node:stream';
import { http } from '../host/node-http.ts';

/** The exit code if the command must not run; it was said why. */
export async function refuseLenientParser(
  io: Pick<Io, 'execArgv' | 'env' | 'err' | 'lenientParser'>,
): Promise<ExitCode | undefined> {
  if (!isNamed(io) && !(await io.lenientParser())) return undefined;
  io.err(
    'Node was started with --insecure-http-parser, which lets requests through that two servers read differently. Take it out of the command, of NODE_OPTIONS and of the files that Node reads options from.',
  );
  return EXIT.usage;
}

/** Node takes underscores for dashes, and in NODE_OPTIONS quotes and backslashes anywhere; what it would not take is refused too. */
function isNamed({ execArgv, env }: Pick<Io, 'execArgv' | 'env'>): boolean {
  const words = [...execArgv, env['NODE_OPTIONS'] ?? ''];
  return words.some((word) =>
    word
      .replace(/["'\\]/g, '')
      .replaceAll('_', '-')
      .includes('--insecure-http-parser'),
  );
}

/** Two framings at once: what a strict parser must refuse, because the next server may choose the other (RFC 9112, 6.1). */
const AMBIGUOUS = 'GET / HTTP/1.1\r\nHost: probe\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';

/**
 * Whether this process's HTTP parser is lenient, by what it does. Node takes the option from its command line, from
 * NODE_OPTIONS in any quoting, from files for the environment and from configuration files: reading names would always
 * miss one. Nothing leaves the process: the bytes are handed to a server that never listens. True if it cannot be told:
 * the caller fails closed.
 */
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
