// Secrets that are not configured: the first start makes them in the store's folder, later starts read them. The file is
// complete or not there, of two starts at once both end up with the same secrets, and no secret is ever logged.
import {
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { storeFile, type StoreSettings } from '../domain/store-settings.ts';
import type { Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { makePrivateFolder } from '../host/private-folder.ts';
import type { Config, LoadedConfig } from './config.ts';
import { apiKey, secret } from './fields.ts';
import type { JwtConfig } from './registry-keys.ts';
import { codeOf } from './secret-files.ts';

const SECRETS_FILE = 'secrets.json';
/** The name under which the made API key appears wherever a key is named. */
const FIRST_KEY_NAME = 'first-start';

const secretsSchema = z.object({ jwt_secret: secret(), api_key: apiKey(), charge_secret: secret() });
type Secrets = z.output<typeof secretsSchema>;

type SecretsDeps = {
  readonly random: Random;
  readonly log: Log;
  /** Command that makes a dashboard token, for the log; `tollgate token` if left out. */
  readonly tokenCommand?: string;
};
type FirstStartResult =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly problem: string };

/**
 * Puts every secret of `loaded` in place. If `registry` runs without `jwt`, `api_keys` or `charges.secrets` they come
 * from `secrets.json` beside the store, which is made (mode 0600) if it is not there. `api_keys: []` stays empty.
 */
export function resolveSecrets(
  loaded: LoadedConfig,
  { random, log, tokenCommand = 'tollgate token' }: SecretsDeps,
): FirstStartResult {
  const { registry, charges } = loaded;
  if (!registry) {
    if (charges.secrets === undefined)
      throw new Error('a configuration without registry and charges.secrets was not checked');
    return { ok: true, config: { ...loaded, registry, charges: { ...charges, secrets: charges.secrets } } };
  }
  const file = secretsFileOf(registry.store);
  if (file === undefined) return sharedSecrets(loaded, registry);
  let made: Secrets | undefined;
  if (registry.jwt === undefined || registry.apiKeys === undefined || charges.secrets === undefined) {
    const uses = { apiKey: registry.apiKeys === undefined, token: registry.jwt === undefined };
    const found = readOrMake(file, uses, { random, log, tokenCommand });
    if (typeof found === 'string') return { ok: false, problem: found };
    made = found;
  }
  const jwt: JwtConfig | undefined =
    registry.jwt ??
    (made && { key: { kind: 'secret', secret: made.jwt_secret }, issuer: 'tollgate', audience: 'dashboard' });
  const apiKeys =
    registry.apiKeys ?? (made && [{ name: FIRST_KEY_NAME, key: made.api_key, scopes: ['sdk', 'ledger'] as const }]);
  const secrets = charges.secrets ?? (made && [made.charge_secret]);
  if (!jwt || !apiKeys || !secrets) throw new Error('secrets that are not configured were not made');
  return { ok: true, config: { ...loaded, registry: { ...registry, jwt, apiKeys }, charges: { ...charges, secrets } } };
}

/** File beside the store that holds the secrets that no configuration names. Undefined: all have to be configured. */
export function secretsFileOf(store: StoreSettings): string | undefined {
  const file = storeFile(store);
  return file === undefined ? undefined : join(dirname(file), SECRETS_FILE);
}

/** Finds the secrets of a shared store: nothing is made that the other processes on it would not have. */
function sharedSecrets(loaded: LoadedConfig, registry: NonNullable<LoadedConfig['registry']>): FirstStartResult {
  const { charges } = loaded;
  const { jwt, apiKeys = [] } = registry;
  if (jwt === undefined) throw new Error('a configuration with PostgreSQL and without registry.jwt was not checked');
  const secrets = charges.secrets ?? [];
  return { ok: true, config: { ...loaded, registry: { ...registry, jwt, apiKeys }, charges: { ...charges, secrets } } };
}

/** Secrets that are in force, not overruled by the configuration. */
type Uses = { readonly apiKey: boolean; readonly token: boolean };

function readOrMake(file: string, uses: Uses, { random, log, tokenCommand }: Required<SecretsDeps>): Secrets | string {
  const existing = read(file, log);
  if (existing !== undefined) return existing;
  try {
    make(file, random);
  } catch (error) {
    return `The data folder cannot be written: ${file} (${codeOf(error)}). Make the folder writable for this user, or configure registry.jwt, registry.api_keys and charges.secrets.`;
  }
  const made = read(file, log);
  if (made === undefined)
    return `The file ${file} is gone right after it was made. Keep other programs out of the data folder.`;
  if (typeof made !== 'string') {
    log.info('made random secrets for the first start', {
      file,
      how: [
        `read them with: cat '${file}'`,
        ...(uses.apiKey ? ['api_key in it is for SDKs and sidecars'] : []),
        ...(uses.token ? [`\`${tokenCommand}\` prints a dashboard token`] : []),
      ].join('; '),
    });
  }
  return made;
}

/** Reads the secrets. Undefined if there is no such file; a sentence if it cannot be used. It is never overwritten. */
function read(file: string, log: Log): Secrets | string | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
    const mode = statSync(file).mode & 0o777;
    if ((mode & 0o077) !== 0) {
      log.warn('others can read the secrets; take the permission away', {
        file,
        mode: mode.toString(8),
        fix: `chmod 600 '${file}'`,
      });
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    return `The secrets in ${file} cannot be read (${codeOf(error)}). Run as the user that made them, or configure registry.jwt, registry.api_keys and charges.secrets.`;
  }
  const parsed = secretsSchema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  return `The file ${file} does not hold usable secrets. Restore it, or delete it to have new ones made: open quotes, tokens and the API key in it are void then.`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function make(file: string, random: Random): void {
  const secrets: Secrets = {
    jwt_secret: random(32).toString('base64url'),
    // The form of keys that the store makes.
    api_key: `tg_${random(8).toString('hex')}_${random(32).toString('base64url')}`,
    charge_secret: random(32).toString('base64url'),
  };
  makePrivateFolder(dirname(file));
  const draft = `${file}.${random(8).toString('hex')}`;
  const handle = openSync(draft, 'wx', 0o600);
  try {
    writeSync(handle, `${JSON.stringify(secrets, undefined, 2)}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  try {
    publish(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Gives the whole `draft` its name at once, unless another start was faster: then its file stays. */
function publish(draft: string, file: string): void {
  try {
    linkSync(draft, file);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return;
    // A mounted file system may have no hard links.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(codeOf(error))) throw error;
    try {
      copyFileSync(draft, file, constants.COPYFILE_EXCL);
    } catch (second) {
      if (codeOf(second) !== 'EEXIST') throw second;
    }
  }
}
