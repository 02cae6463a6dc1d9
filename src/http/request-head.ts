// Writes the head of a request to the upstream, byte for byte what was decided, one character a byte. Whatever would make
// two requests of one (a line break, a space in the target, a name that is none) is refused here, whoever let it
// through before.
import type { UpstreamRequest } from './transport.ts';

const METHOD = /^[A-Z][A-Z0-9!#$%&'*+.^_`|~-]*$/;
const TARGET = /^[\x21-\x7e]+$/;
const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
const NOT_A_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const REMEMBERED_NAMES = 512;

/** What is returned gives the head with its empty line, or undefined where it cannot be written. */
export function createHeadWriter(): (request: UpstreamRequest) => string | undefined {
  // Names repeat, values do not: a name that was found good is not looked at again, and what stands before its value is
  // one string.
  const known = new Map<string, string>();
  const startOf = (name: string): string | undefined => {
    const start = known.get(name);
    if (start !== undefined) return start;
    if (!NAME.test(name)) return undefined;
    const made = `\r\n${name}: `;
    if (known.size < REMEMBERED_NAMES) known.set(name, made);
    return made;
  };
  return ({ method, target, headers }) => {
    if (!METHOD.test(method) || !TARGET.test(target)) return undefined;
    let head = `${method} ${target} HTTP/1.1`;
    for (let i = 0; i + 1 < headers.length; i += 2) {
      const start = startOf(headers[i] ?? '');
      const value = headers[i + 1] ?? '';
      if (start === undefined || NOT_A_VALUE.test(value)) return undefined;
      head += start + value;
    }
    return `${head}\r\n\r\n`;
  };
}
