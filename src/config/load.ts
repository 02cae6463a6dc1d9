// Loads a configuration file: a LoadedConfig, or everything that is wrong with it. Reads the file and the secret files
// it names; binds nothing, creates nothing.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Networks } from '../domain/payment/network.ts';
import { fillAdminListen } from './admin-listen.ts';
import type { LoadedConfig } from './config.ts';
import { readDocument } from './document.ts';
import type { Env } from './environment.ts';
import { formatPath, type ConfigProblem, type Path } from './problems.ts';
import { codeOf } from './secret-files.ts';
import { validate } from './validate.ts';

export type LoadResult =
  /** The configuration is right. `filesBeside`: those that it named and that a reload reads too, absolute. */
  | {
      readonly ok: true;
      readonly config: LoadedConfig;
      readonly filesBeside: readonly string[];
      /** A problem with the value at `path`, found later. */
      readonly problemAt: (path: Path, message: string) => ConfigProblem;
    }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

const DEFAULT_FILE = 'tollgate.yaml';
const MAX_BYTES = 1_048_576;

/**
 * Finds the file: `--config`, else `TOLLGATE_CONFIG`, else `tollgate.yaml` in `folder` if it is there; as it is to be
 * named in messages.
 */
export function findConfigFile(flag: string | undefined, env: Env, folder: string): string | undefined {
  const named = flag ?? (env['TOLLGATE_CONFIG'] || undefined);
  if (named !== undefined) return named;
  return existsSync(resolve(folder, DEFAULT_FILE)) ? DEFAULT_FILE : undefined;
}

/** Loads `file` (relative to `folder`). Problems come in the order of the file. */
export function loadConfig(file: string, env: Env, folder: string, networks: Networks): LoadResult {
  const path = resolve(folder, file);
  const read = readSource(path);
  if ('problem' in read) {
    return { ok: false, problems: [{ file, line: 1, column: 1, path: '(file)', message: read.problem }] };
  }
  return readConfig(read.text, { file, path, env, networks });
}

/** Reads a configuration from text. `file` is its name in messages, `path` where it stands. */
export function readConfig(
  text: string,
  { file, path, env, networks, now }: { file: string; path: string; env: Env; networks: Networks; now?: number },
): LoadResult {
  const document = readDocument(text, env);
  if (document.syntax.length > 0) {
    return { ok: false, problems: document.syntax.map((error) => ({ ...error, file, path: '(file)' })) };
  }
  const issues = [...document.issues, ...fillAdminListen(document.data, env)];
  const result = validate({ ...document, issues, file: path, folder: dirname(path), networks, env, now });
  const problemAt = (at: Path, message: string): ConfigProblem => ({
    ...{ file, path: formatPath(at), message },
    ...document.locate(at),
  });
  if (result.ok) return { ...result, problemAt };
  const problems = result.issues.map(({ path, at, message }) => {
    const { line, column } = document.locate(path, at);
    return { file, line, column, path: formatPath(path), message };
  });
  return { ok: false, problems: problems.sort((a, b) => a.line - b.line || a.column - b.column) };
}

function readSource(path: string): { text: string } | { problem: string } {
  try {
    if (statSync(path).size > MAX_BYTES)
      return { problem: `is larger than ${MAX_BYTES} bytes; that is no configuration` };
    return { text: readFileSync(path, 'utf8') };
  } catch (error) {
    return { problem: `cannot be read (${codeOf(error)}); check its name and permissions` };
  }
}
