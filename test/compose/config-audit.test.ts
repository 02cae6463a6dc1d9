// What the audit log holds of a configuration: which members a reload changed, what was refused, and never a secret.
import { hostname } from 'node:os';
import { afterAll, expect, test } from 'vitest';
import { startAudit } from '../../src/compose/audit.ts';
import { configDifference, configName } from '../../src/compose/config-members.ts';
import type { Config } from '../../src/config/config.ts';
import { resolveSecrets } from '../../src/config/first-start.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { AuditEntry } from '../../src/domain/audit.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';
import { createRandom } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import type { AuditStore, StoredAudit } from '../../src/registry/store/audit-ports.ts';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { temporaryFolder } from '../registry/kit.ts';

const log = createLog('error', () => undefined, Date.now);
const { folder, remove } = temporaryFolder();
afterAll(remove);

/** A configuration in which every secret is `mark` somewhere. */
function configWith(
  mark: string,
  rest: { price?: string; payTo?: string; limit?: number; level?: string } = {},
): Config {
  const { price = '0.10', payTo = `0x${'11'.repeat(20)}`, limit = 4096, level = 'info' } = rest;
  const long = mark.repeat(8);
  const text = `
proxy: { upstream: "http://127.0.0.1:3000", limits: { target: ${limit} } }
registry:
  listen: 127.0.0.1:0
  jwt: { secret: "${long}" }
  api_keys: [{ name: sidecar, key: "key-${long}", scopes: [sdk] }]
charges: { secrets: ["${long}"] }
log: { level: ${level} }
routes: [{ route_pattern: /a, amount: "${price}" }]
receivers:
  - id: default
    scheme: exact
    network: base-sepolia
    asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
    asset_decimals: 6
    asset_name: USDC
    asset_version: "2"
    pay_to_address: "${payTo}"
    currencies: [USD]
    rpc_url: "https://node.example.com/v2/${long}"
    facilitators: [{ url: "https://f.example.com/${long}/x402", headers: { Authorization: "Bearer ${long}" } }]
`;
  const file = path.join(folder, 'tollgate.yaml');
  writeFileSync(file, text);
  const loaded = loadConfig(file, {}, folder, NETWORKS);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const resolved = resolveSecrets(loaded.config, { random: createRandom(), log });
  if (!resolved.ok) throw new Error(resolved.problem);
  return resolved.config;
}

test('behaviour: a changed configuration is told member by member, where money goes among them', () => {
  const before = configWith('one-secret');
  const other = `0x${'22'.repeat(20)}`;
  const { from, to } = configDifference(before, configWith('one-secret', { limit: 8192, payTo: other, price: '9' }));
  expect(Object.keys(to).toSorted()).toEqual(['proxy.limits.target', 'receivers.default']);
  expect([from['proxy.limits.target'], to['proxy.limits.target']]).toEqual([4096, 8192]);
  expect(JSON.stringify(from['receivers.default'])).toContain('11'.repeat(20));
  expect(JSON.stringify(to['receivers.default'])).toContain('22'.repeat(20));
  expect(configDifference(before, configWith('one-secret'))).toEqual({ from: {}, to: {} });
});

test('attack: a secret of a configuration is read out of the audit log: it says that one changed, and holds none', () => {
  const [before, after] = [configWith('one-secret'), configWith('two-secret')];
  const { from, to } = configDifference(before, after);
  const told = JSON.stringify([from, to]);
  expect(told).not.toMatch(/one-secret|two-secret/);
  expect(Object.keys(to).toSorted()).toEqual([
    'charges.secrets',
    'receivers.default',
    'registry.api_keys',
    'registry.jwt',
  ]);
  for (const name of Object.keys(to)) expect([name, to[name]]).toEqual([name, '(hidden, changed)']);
  // Its name is no way to guess a secret either.
  expect(configName(before)).toBe(configName(after));
});

test('behaviour: a start is noted once for a configuration and version, a reload each time, and a refused one with its reason', async () => {
  const entries: AuditEntry[] = [];
  const audit: AuditStore = {
    add: async (entry) => void entries.push(entry),
    list: async ({ kind }) => {
      const last = entries.findLast((each) => each.kind === kind);
      return last === undefined ? [] : [{ ...last, n: entries.length } satisfies StoredAudit];
    },
    prune: async () => false,
  };
  const config = configWith('one-secret');
  const start = async (version: string, of = config): Promise<ReturnType<typeof startAudit>> => {
    const started = startAudit(audit, () => of, {
      version,
      clock: { now: () => 7 },
      schedule: () => () => undefined,
      log,
    });
    await new Promise(setImmediate);
    return started;
  };
  await start('1.0.0');
  await start('1.0.0');
  const { taken, refused } = await start('1.1.0');
  await taken(config, configWith('one-secret', { level: 'debug' }));
  await refused('tollgate.yaml:3:1 proxy.upsteam: is not known; did you mean upstream?');
  expect(entries.map(({ kind }) => kind)).toEqual(['config.taken', 'config.taken', 'config.taken', 'config.refused']);
  const [first, second, third, last] = entries;
  expect(first).toMatchObject({ actor: 'configuration', via: 'configuration', subject: hostname(), from: {} });
  expect([second?.from, second?.to]).toMatchObject([{ version: '1.0.0' }, { version: '1.1.0' }]);
  expect([third?.from, third?.to]).toMatchObject([{ 'log.level': 'info' }, { 'log.level': 'debug' }]);
  expect(last?.to).toEqual({ reason: expect.stringContaining('did you mean upstream') });
});
