// Secrets that nobody configured: made once, kept beside the store, read by every later start, never logged.
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resolveSecrets } from '../../src/config/first-start.ts';
import { createRandom } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import { configOf, KEY, SECRET } from './support.ts';

let folder: string;
let logged: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-'));
  logged = '';
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const file = (): string => join(folder, 'data', 'secrets.json');
const stored = (): Record<string, string> => JSON.parse(readFileSync(file(), 'utf8'));

function start(text: string) {
  const log = createLog(
    'debug',
    (line) => (logged += line),
    () => 0,
  );
  return resolveSecrets(configOf(text, {}, join(folder, 't.yaml')), { random: createRandom(), log });
}

function started(text: string) {
  const result = start(text);
  if (!result.ok) throw new Error(result.problem);
  return result.config;
}

test('behaviour: a first start makes secrets for its owner alone and says where they are, not what', () => {
  const { registry, charges } = started('registry: {}');
  expect(statSync(file()).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(folder, 'data'))).toEqual(['secrets.json']);
  const secrets = stored();
  expect(registry?.jwt).toEqual({
    key: { kind: 'secret', secret: secrets['jwt_secret'] },
    issuer: 'tollgate',
    audience: 'dashboard',
  });
  expect(registry?.apiKeys).toEqual([{ name: 'first-start', key: secrets['api_key'], scopes: ['sdk', 'ledger'] }]);
  expect(charges.secrets).toEqual([secrets['charge_secret']]);
  expect(secrets['api_key']).toMatch(/^tg_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
  expect(new Set(Object.values(secrets)).size).toBe(3);
  expect(logged).toContain(`cat '${file()}'`);
  for (const secret of Object.values(secrets)) {
    expect(Buffer.byteLength(secret)).toBeGreaterThanOrEqual(32);
    expect(logged).not.toContain(secret);
  }
});

test('behaviour: a second start reads what the first one made, and says nothing', () => {
  const first = started('registry: {}');
  logged = '';
  expect(started('registry: {}')).toEqual(first);
  expect(logged).toBe('');
});

test('behaviour: a secret that is configured is used, and none is made if none is missing', () => {
  const whole = `registry:\n  jwt: { secret: "${SECRET}" }\n  api_keys: [{ name: a, key: ${KEY} }]\ncharges: { secrets: ["${SECRET}"] }\n`;
  expect(started(whole).charges.secrets).toEqual([SECRET]);
  expect(readdirSync(folder)).toEqual([]);
  const part = started(whole.replace(/^charges.*$/m, ''));
  expect(part.registry?.apiKeys).toEqual([{ name: 'a', key: KEY, scopes: ['sdk'] }]);
  expect(part.charges.secrets).toEqual([stored()['charge_secret']]);
});

test('behaviour: an empty list of keys stays empty', () => {
  expect(started('registry: { api_keys: [] }').registry?.apiKeys).toEqual([]);
});

test('behaviour: a sidecar has its own secrets and makes none', () => {
  const text = `proxy: { upstream: "http://127.0.0.1:1" }\nsync: { registry_url: "https://r", api_key: ${KEY} }\ncharges: { secrets: ["${SECRET}"] }\n`;
  expect(started(text).charges.secrets).toEqual([SECRET]);
  expect(readdirSync(folder)).toEqual([]);
});

test('behaviour: secrets that others can read are used with a warning that says how to mend it', () => {
  started('registry: {}');
  chmodSync(file(), 0o644);
  logged = '';
  started('registry: {}');
  expect(JSON.parse(logged)).toMatchObject({ level: 'warn', mode: '644', fix: `chmod 600 '${file()}'` });
});

test.each(['', '{', '{}', '[]', '{"jwt_secret":"canary","api_key":"canary","charge_secret":"canary"}'])(
  'refuses: a secrets file that holds %j, and leaves it as it is',
  (content) => {
    mkdirSync(join(folder, 'data'));
    writeFileSync(file(), content, { mode: 0o600 });
    const result = start('registry: {}');
    expect(result).toEqual({ ok: false, problem: expect.stringContaining('does not hold usable secrets') });
    expect(JSON.stringify(result)).not.toContain('canary');
    expect(readFileSync(file(), 'utf8')).toBe(content);
  },
);

test('refuses: a data folder that cannot be written', () => {
  writeFileSync(join(folder, 'data'), '');
  expect(start('registry: {}')).toEqual({
    ok: false,
    problem: expect.stringMatching(/(cannot be written|cannot be read).*(ENOTDIR|EEXIST)/),
  });
});

test('attack: two first starts at once both have the secrets of one', () => {
  const random = createRandom();
  let rival: unknown;
  const log = createLog(
    'debug',
    () => undefined,
    () => 0,
  );
  const loaded = configOf('registry: {}', {}, join(folder, 't.yaml'));
  // The rival starts while this one is drawing its secrets: after it looked, before it wrote.
  const slow = (size: number): Buffer => {
    rival ??= resolveSecrets(loaded, { random, log });
    return random(size);
  };
  expect(resolveSecrets(loaded, { random: slow, log })).toEqual(rival);
  expect(readdirSync(join(folder, 'data'))).toEqual(['secrets.json']);
});
