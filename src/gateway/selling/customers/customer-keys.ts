// Recognises customers by their keys: the value of a header, less `Bearer `, whose SHA-256 stands in a file. Only the digest
// is compared, so that neither the file nor the time of an answer tells a key. A right key is always found, however many
// wrong ones its address has tried.
import { hash } from 'node:crypto';
import { headerValues } from '../../caller.ts';
import type { KeysInForce } from './key-files.ts';
import { ABSENT, UNKNOWN, type Recognise } from './recognition.ts';

const KEY = /^[\x21-\x7e]{16,512}$/;
const BEARER = /^Bearer +/i;

export function recogniseKeys(header: string, entry: string, keys: KeysInForce): Recognise {
  return ({ req }) => {
    const [value, ...others] = headerValues(req.rawHeaders, header);
    if (value === undefined) return ABSENT;
    const key = value.replace(BEARER, '');
    if (others.length > 0 || !KEY.test(key)) return UNKNOWN;
    if (keys.table === undefined) return { kind: 'unavailable' };
    const name = keys.table.find(hash('sha256', key, 'buffer'));
    if (name === undefined) return UNKNOWN;
    return { kind: 'known', name: name === '' ? entry : name };
  };
}
