// Refuses to run where Node's HTTP parser was told to be lenient: every rule about framing would be void then. For every
// command that opens a listener. Names are looked at for a clear message, but what counts is how the parser behaves.
import { EXIT, type ExitCode, type Io } from './command.ts';

/** The exit code where the command must not run; it was said why. */
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
