// No test leaves this machine: a name that is not this machine's is not found, at once, in tests and, through `--import`, in
// the processes that they start. A start asks facilitators and nodes in the background, and their public addresses are
// the defaults.
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { isIP } from 'node:net';
import { hostname as ownName } from 'node:os';

type Answer = (error: NodeJS.ErrnoException | null, ...found: unknown[]) => void;

const isHere = (name: string): boolean => isIP(name) !== 0 || name === ownName() || /(?:^|\.)localhost$/.test(name);

const notFound = (name: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), {
    ...{ code: 'ENOTFOUND', errno: -3008, syscall: 'getaddrinfo', hostname: name },
  });

const lookup = dns.lookup;
const replaced = (name: string, ...rest: [unknown, Answer?]): void => {
  const answer = rest.at(-1);
  if (isHere(name) || typeof answer !== 'function') return void Reflect.apply(lookup, dns, [name, ...rest]);
  process.nextTick(() => Reflect.apply(answer, undefined, [notFound(name)]));
};
Object.assign(dns, { lookup: Object.assign(replaced, lookup) });
syncBuiltinESMExports();

/** For `node --import`. */
export const NO_NETWORK = ['--import', import.meta.filename];
