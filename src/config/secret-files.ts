// Secrets that stand in files of their own: every secret key may be written with `_file`, as containers mount them. The
// content takes the secret's place before the schema looks; complaints about it point at the `_file` key.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { isMap, valueAt, type Issue, type Path } from './problems.ts';

type SecretPlace = { readonly section: Path; readonly key: string; readonly lines?: true };

/** Places of secrets. `lines`: the file holds a list, one secret a line. */
const PLACES: readonly SecretPlace[] = [
  { section: ['registry', 'jwt'], key: 'secret' },
  { section: ['registry', 'jwt'], key: 'public_key' },
  { section: ['registry', 'api_keys', '*'], key: 'key' },
  { section: ['registry', 'desk', 'oidc'], key: 'client_secret' },
  { section: ['selling', 'customers', '*', 'jwt'], key: 'secret' },
  { section: ['selling', 'customers', '*', 'jwt'], key: 'public_key' },
  { section: ['charges'], key: 'secrets', lines: true },
  { section: ['sync'], key: 'api_key' },
  { section: ['assertion'], key: 'secret' },
  { section: ['webhooks', '*'], key: 'secret', lines: true },
  { section: ['decision', '*'], key: 'secret' },
  { section: ['receivers', '*', 'facilitators', '*', 'auth'], key: 'token' },
  { section: ['receivers', '*', 'facilitators', '*', 'auth'], key: 'key_secret' },
  { section: ['receivers', '*', 'accepts', '*', 'facilitators', '*', 'auth'], key: 'token' },
  { section: ['receivers', '*', 'accepts', '*', 'facilitators', '*', 'auth'], key: 'key_secret' },
];
const FILE_KEYS = new Set(PLACES.map(({ key }) => key));

const MAX_BYTES = 65_536;

type SecretFiles = {
  readonly issues: readonly Issue[];
  /** The files that were named, absolute. */
  readonly files: readonly string[];
  /** The path that was written, for a path of the data: `sync.api_key` was `sync.api_key_file`. */
  readonly written: (path: Path) => Path;
};

/** Names the key with `_file` wherever `key` is a secret. */
export function fileKeyOf(key: string): string | undefined {
  return FILE_KEYS.has(key) ? `${key}_file` : undefined;
}

/** Replaces every `..._file` in `data` (changing it) by what its file holds, without the line end. */
export function readSecretFiles(data: unknown, folder: string): SecretFiles {
  const issues: Issue[] = [];
  const moved: { from: Path; to: Path }[] = [];
  const files: string[] = [];
  for (const place of PLACES) {
    for (const section of sectionsAt(data, place.section)) {
      const fileKey = `${place.key}_file`;
      const holder = valueAt(data, section);
      if (!isMap(holder) || !Object.hasOwn(holder, fileKey)) continue;
      const path = [...section, fileKey];
      const file = holder[fileKey];
      delete holder[fileKey];
      if (Object.hasOwn(holder, place.key)) {
        issues.push({ path, at: 'key', message: `stands beside ${place.key}; keep one of the two` });
        continue;
      }
      moved.push({ from: [...section, place.key], to: path });
      if (typeof file === 'string' && file !== '') files.push(resolve(folder, file));
      const content =
        typeof file === 'string' && file !== '' ? readSecret(resolve(folder, file)) : { problem: 'is not a file name' };
      if ('problem' in content) {
        issues.push({ path, message: content.problem });
        // Present, so that nothing else complains that it is missing; what stands here is never used.
        holder[place.key] = place.lines ? [''] : '';
      } else {
        holder[place.key] = place.lines ? content.text.split(/\r?\n/).filter((line) => line !== '') : content.text;
      }
    }
  }
  const written = (path: Path): Path => {
    const move = moved.find(({ from }) => from.every((step, index) => step === path[index]));
    return move ? move.to : path;
  };
  return { issues, files, written };
}

function sectionsAt(data: unknown, section: Path): Path[] {
  const star = section.indexOf('*');
  if (star < 0) return [section];
  const before = section.slice(0, star);
  const list = valueAt(data, before);
  if (!Array.isArray(list)) return [];
  return list.flatMap((_, index) => sectionsAt(data, [...before, index, ...section.slice(star + 1)]));
}

function readSecret(file: string): { text: string } | { problem: string } {
  try {
    const content = readFileSync(file);
    if (content.length > MAX_BYTES)
      return { problem: `names a file of more than ${MAX_BYTES} bytes; that is no secret` };
    return { text: content.toString('utf8').replace(/\r?\n$/, '') };
  } catch (error) {
    return { problem: `names a file that cannot be read (${codeOf(error)}); check the path and its permissions` };
  }
}

/** The system's code for an I/O error, such as ENOENT. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}
