// `${NAME}`: where it is filled in, what it may become, and that neither it nor any other secret ever shows in a message.
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { interpolate } from '../../src/config/environment.ts';
import { readConfig } from '../../src/config/load.ts';
import { configOf, KEY, problemsOf, SECRET } from './support.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';

describe('behaviour: an expression in a text', () => {
  test.each([
    ['${A}', 'one'],
    ['x${A}y${B}z', 'xoneytwoz'],
    ['${UNSET:-fallback}', 'fallback'],
    ['${EMPTY:-fallback}', 'fallback'],
    ['${A:-fallback}', 'one'],
    ['${UNSET:-}', ''],
    ['${EMPTY}', ''],
    ['${UNSET:-a:-b}', 'a:-b'],
    ['$${A}', '${A}'],
    ['$A and {A} and $', '$A and {A} and $'],
    ['${NESTED}', '${A}'],
  ])('the text %s becomes %s', (text, filled) => {
    const result = interpolate(text, { A: 'one', B: 'two', EMPTY: '', NESTED: '${A}' });
    expect(result).toEqual({ text: filled, changed: text !== filled, problems: [] });
  });

  test.each(['${UNSET}', '${}', '${ A}', '${A', '${1A}', '${A-b}', '${toString}', '${__proto__}'])(
    'refuses: the expression %s',
    (text) => {
      expect(interpolate(text, { A: 'one' }).problems).toHaveLength(1);
    },
  );
});

describe('behaviour: an expression in a document', () => {
  test('an expression may stand inside flow lists and maps as the contract writes them', () => {
    const text =
      'registry:\n  jwt: { secret: ${S}, issuer: me }\n  api_keys: [{ name: a, key: ${K}, scopes: [sdk, ledger] }]\ncharges: { secrets: [${S}, "${S}2"] }\n';
    const config = configOf(text, { S: SECRET, K: KEY });
    expect(config.registry?.jwt?.key).toEqual({ kind: 'secret', secret: SECRET });
    expect(config.registry?.apiKeys).toEqual([{ name: 'a', key: KEY, scopes: ['sdk', 'ledger'] }]);
    expect(config.charges.secrets).toEqual([SECRET, `${SECRET}2`]);
  });

  test('a default of an expression may hold what YAML would read as its own', () => {
    expect(configOf('registry: { store: ${S:-sqlite:a,[b]{c}, cors_origins: ["*"] }').registry?.store.name).toBe(
      '/srv/a,[b]{c',
    );
  });

  test('an expression becomes a number or a truth value where one is wanted, and stays text elsewhere', () => {
    const text = `
proxy:
  upstream: \${U}
  customer_header_trusted: \${T}
  limits: { in_flight: "\${N}" }
registry:
routes: [{ route_pattern: /a, amount: \${PRICE}, name: \${N} }]
`;
    const { proxy, routes } = configOf(text, { U: 'http://127.0.0.1:1', T: 'true', N: '42', PRICE: '0.10' });
    expect(proxy).toMatchObject({ customerHeaderTrusted: true, limits: { inFlight: 42 } });
    expect(routes[0]).toMatchObject({ amount: '0.10', name: '42' });
  });

  test.each(['4e1', '0x10', '', 'yes', '-1', '12345678901234567'])('refuses: %s where a number is wanted', (value) => {
    expect(problemsOf('registry: {}\nmetrics: { max_routes: "${N}" }', { N: value })).toEqual([
      expect.stringMatching(/^2:24 metrics\.max_routes: is/),
    ]);
  });

  test('refuses: a wrong value from the environment, at the place of the expression', () => {
    expect(problemsOf('registry:\n  listen: ${L}\n', { L: 'nowhere' })).toEqual([
      expect.stringMatching(/^2:11 registry\.listen: is not an address/),
    ]);
  });

  test('attack: a value of the environment cannot become structure', () => {
    const evil = 'sqlite:a\nadmin: { listen: 0.0.0.0:1 }\nx: "}], {';
    const config = configOf('registry: { store: ${S} }', { S: evil });
    expect(config.registry?.store.name.endsWith(evil.slice('sqlite:'.length))).toBe(true);
    expect(config.admin.listen.port).toBe(9402);
  });

  test('behaviour: keys and comments of a document are left alone', () => {
    expect(problemsOf('registry: {}\n${S}: 1 # ${T}\n', { S: 'log', T: 'x' })).toEqual([
      expect.stringContaining('is not known here'),
    ]);
  });
});

describe('secrets never show', () => {
  const CANARY = 'canary-5f1c';
  const env = { CANARY, LONG: `${CANARY} ${CANARY} ${CANARY} ${CANARY}` };
  test.each([
    [
      'every kind of key',
      'proxy: ${CANARY}\nregistry:\n  listen: ${CANARY}\n  store: ${CANARY}\n  jwt: { secret: ${CANARY}, public_key: ${CANARY} }\n  api_keys: [{ name: "${LONG}", key: "${CANARY}", scopes: ["${CANARY}"] }, "${CANARY}"]\n',
    ],
    [
      'every kind of section',
      'sync: { registry_url: "http://${CANARY}.example", api_key: ${CANARY}, poll_interval: ${CANARY}, insecure: ${CANARY} }\ncharges: { secrets: ${CANARY} }\nlog: { level: ${CANARY} }\nworkers: ${CANARY}\n',
    ],
    [
      'receivers',
      'registry:\nreceivers: [{ id: "${LONG}", network: "${CANARY}", pay_to_address: "${CANARY}", rpc_url: "${CANARY}", facilitators: [{ url: "${CANARY}", headers: { Authorization: "a\\n${CANARY}" } }] }]\n',
    ],
    [
      'routes',
      'registry:\nroutes: [{ route_pattern: "/${CANARY}", amount: "${CANARY}", method: "${LONG}", currency: "${CANARY}" }]\n',
    ],
    [
      'what is written out',
      `registry:\n  jwt: { secret: ${CANARY} }\n  api_keys: [{ name: a, key: ${CANARY} }]\ncharges: { secrets: ["${CANARY}"] }\n`,
    ],
    ['syntax errors', `registry:\n  jwt: { secret: "${CANARY}" ${CANARY}, [ }\n  @${CANARY}: *${CANARY}\n`],
    [
      'tags, anchors and keys',
      `registry: &${CANARY} !${CANARY} { a: *${CANARY} }\ncharges: { secrets: { "${CANARY} ${CANARY}": 1 } }\n`,
    ],
  ])('attack: no complaint shows a secret that stands in %s', (_name, text) => {
    const problems = problemsOf(text, env);
    expect(problems.length).toBeGreaterThan(0);
    // Only the name of a key that does not look like a value is ever repeated.
    expect(problems.join('\n')).not.toContain(CANARY);
  });
});

describe('secrets in files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const put = (name: string, content: string): void => writeFileSync(join(folder, name), content);
  const load = (text: string) =>
    readConfig(text, { file: 't.yaml', path: join(folder, 't.yaml'), env: {}, networks: NETWORKS });
  const problems = (text: string): string[] => {
    const result = load(text);
    return result.ok
      ? []
      : result.problems.map(({ line, column, path, message }) => `${line}:${column} ${path}: ${message}`);
  };

  test('behaviour: every secret may stand in a file beside the configuration, its line end left out', () => {
    put('secret', `${SECRET}\n`);
    put('key', KEY);
    put('secrets', `${SECRET}\r\n\n${SECRET}2\n`);
    put('pem', PUBLIC_KEY);
    const registry = load(
      'registry:\n  jwt: { secret_file: secret }\n  api_keys: [{ name: a, key_file: key }]\ncharges: { secrets_file: secrets }\n',
    );
    expect(registry).toMatchObject({
      ok: true,
      config: {
        registry: { jwt: { key: { secret: SECRET } }, apiKeys: [{ key: KEY }] },
        charges: { secrets: [SECRET, `${SECRET}2`] },
      },
    });
    expect(load('registry:\n  jwt: { public_key_file: pem }\n')).toMatchObject({
      ok: true,
      config: { registry: { jwt: { key: { pem: PUBLIC_KEY.trim() } } } },
    });
    const sidecar = `proxy: { upstream: "http://127.0.0.1:1" }\nsync: { registry_url: "https://r", api_key_file: ${join(folder, 'key')} }\ncharges: { secrets_file: secrets }\n`;
    expect(load(sidecar)).toMatchObject({ ok: true, config: { sync: { apiKey: KEY } } });
  });

  test('refuses: a file that is not there, is too short or stands beside the secret, at the _file key', () => {
    put('short', 'canary-short');
    // A whole private key: a public one could be derived from it.
    put('private', generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const text = `registry:
  jwt: { public_key_file: private }
  api_keys:
    - { name: a, key_file: nowhere }
    - { name: b, key: ${KEY}, key_file: key }
charges:
  secrets_file: short
`;
    const found = problems(text);
    expect(found).toEqual([
      expect.stringMatching(/^2:27 registry\.jwt\.public_key_file: is not a public key/),
      expect.stringMatching(/^4:28 registry\.api_keys\[0\]\.key_file: names a file that cannot be read \(ENOENT\)/),
      expect.stringMatching(/^5:41 registry\.api_keys\[1\]\.key_file: stands beside key/),
      expect.stringMatching(/^7:17 charges\.secrets_file: is not a secret of at least 32 bytes/),
    ]);
    expect(found.join()).not.toContain('canary');
  });

  test('refuses: a misspelled _file key, with the one that is meant', () => {
    expect(problems('registry:\n  jwt: { secret_fil: secret, jwks_url: "https://a" }\n')).toEqual([
      expect.stringContaining('did you mean secret_file?'),
    ]);
  });
});

// An Ed25519 key that was made for this test and thrown away.
const PUBLIC_KEY = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
`;
