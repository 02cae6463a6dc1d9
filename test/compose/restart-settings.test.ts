// What a reload applies to decision listeners, each of which is known by its place in the list.
import { expect, test } from 'vitest';
import { applyConfig } from '../../src/compose/restart-settings.ts';
import type { Config } from '../../src/config/config.ts';
import { readConfig } from '../../src/config/load.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';

const OPEN = { listen: '127.0.0.1:8405', dialect: 'caddy' };
const SECRET = { listen: '0.0.0.0:8404', dialect: 'caddy', secret: 'a-secret-of-the-proxy' };

/** A configuration with these listeners. JSON is YAML. */
function configOf(...decision: readonly object[]): Config {
  const text = JSON.stringify({ decision, registry: { listen: '127.0.0.1:0', store: 'sqlite:tollgate.db' } });
  const read = readConfig(text, { file: 'tollgate.yaml', path: '/tollgate.yaml', env: {}, networks: NETWORKS });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.config as Config;
}

test('behaviour: a listener that stays where it was gets its new settings', () => {
  const { config, restart } = applyConfig(configOf(SECRET, OPEN), configOf({ ...SECRET, answer_within: '2s' }, OPEN));
  expect([config.decision?.[0]?.answerWithinMs, restart]).toEqual([2000, []]);
});

test('attack: a port that is bound keeps its secret if its listener is to move to another one', () => {
  const moved = { listen: '127.0.0.1:8404', dialect: 'caddy' };
  const { config, restart } = applyConfig(configOf(SECRET), configOf(moved));
  expect([config.decision?.[0]?.secret, restart]).toEqual([SECRET.secret, ['decision']]);
});

test.each([
  ['in another order', [OPEN, SECRET]],
  ['with another one in the place of one', [{ ...OPEN, listen: '127.0.0.1:8406' }, OPEN]],
])('attack: listeners %s wait for a restart, and none runs with the secret of another', (_how, next) => {
  const { config, restart } = applyConfig(configOf(SECRET, OPEN), configOf(...next));
  expect(config.decision?.map(({ secret }) => secret)).toEqual([SECRET.secret, undefined]);
  expect(restart).toEqual(['decision']);
});
