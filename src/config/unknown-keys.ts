// Keys that the schema does not know: the complaint names the key that was meant, also if another program calls it
// otherwise.
import { z } from 'zod';
import { suggest } from '../domain/suggest.ts';
import { writtenSchema } from './keys.ts';
import { valueAt, type Issue, type Path } from './problems.ts';
import { fileKeyOf } from './secret-files.ts';

/** Words of other programs, by the key that is meant. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  route_pattern: ['path', 'pattern', 'route', 'url'],
  amount: ['price', 'cost'],
  method: ['verb', 'methods'],
  receiver_config_id: ['receiver'],
  plan_id: ['plan'],
  pay_to_address: ['address', 'wallet', 'pay_to', 'recipient'],
  upstream: ['target', 'backend', 'origin', 'destination'],
  listen: ['port', 'bind', 'address'],
};
const TLS = new Set(['tls', 'ssl', 'https', 'certificate', 'cert', 'cert_file']);

/** The complaint about `key` at `path`, where `known` keys may stand. */
export function unknownKey(key: string, path: Path, known: readonly string[]): Issue {
  const issue = (message: string): Issue => ({ path: [...path, key], at: 'key', message });
  if (TLS.has(key)) {
    return issue('is not known, because TLS is not done here; put a proxy that does TLS in front of Tollgate');
  }
  const word = known.find((name) => SYNONYMS[name]?.includes(key.toLowerCase())) ?? suggest(key, known);
  // The key that was meant is not told as missing too.
  if (word !== undefined) {
    return { ...issue(`is not known here; did you mean ${word}?`), covers: [...path, word] };
  }
  return issue(`is not known here; ${known.length === 0 ? 'take it out' : `known are ${known.join(', ')}`}`);
}

/** The keys that the schema takes at `path`, the `_file` spellings of secrets included. */
export function knownKeys(schema: unknown, path: Path): string[] {
  let at = schema;
  for (const step of [...path, undefined]) {
    at = writtenSchema(at);
    if (step === undefined) break;
    if (at instanceof z.ZodArray) at = at.element;
    else if (at instanceof z.ZodObject) at = valueAt(at.shape, [step]);
  }
  const keys = at instanceof z.ZodObject ? Object.keys(at.shape) : [];
  return keys.flatMap((key) => [key, fileKeyOf(key) ?? []].flat());
}
