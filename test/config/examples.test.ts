// The files that people start from: they load, they are whole, and what their comments call a default is one.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { formatProblem } from '../../src/config/problems.ts';
import { configWarnings } from '../../src/config/warnings.ts';
import { newCdpAccount } from '../support/callers.ts';
import { keepSecret } from '../support/canaries.ts';
import { ADDRESS, configOf, KEY, problemsOf, SECRET } from './support.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';

const FOLDER = join(import.meta.dirname, '../../config');
const ENV = {
  PAY_TO: ADDRESS,
  TOLLGATE_API_KEY: KEY,
  TOLLGATE_JWT_SECRET: SECRET,
  TOLLGATE_CHARGE_SECRET: SECRET,
  POSTGRES_PASSWORD: 'the-password-of-the-database',
  FACILITATOR_KEY: 'f',
};

test.each([
  ['all-in-one.yaml', 'all-in-one'],
  ['sidecar.yaml', 'sidecar'],
  ['registry.yaml', 'registry'],
  ['postgres.yaml', 'all-in-one'],
])('behaviour: %s loads as %s, without a warning that the file could spare', (file, shape) => {
  const result = loadConfig(join(FOLDER, file), ENV, '/', NETWORKS);
  expect(result.ok ? [] : result.problems.map(formatProblem)).toEqual([]);
  if (!result.ok) return;
  expect(result.config.shape).toBe(shape);
  // Only the operator knows the names of the API.
  expect(configWarnings(result.config, NETWORKS)).toEqual(
    result.config.proxy ? [expect.stringContaining('without `public_url` and `hosts`')] : [],
  );
});

test('behaviour: an example needs what it says it needs, and names it', () => {
  const text = readFileSync(join(FOLDER, 'sidecar.yaml'), 'utf8');
  const problems = problemsOf(text);
  for (const name of ['TOLLGATE_API_KEY', 'TOLLGATE_CHARGE_SECRET', 'PAY_TO']) {
    expect(problems).toContainEqual(expect.stringContaining(`the environment variable ${name} is not set`));
  }
  expect(problems).toHaveLength(3);
});

test('behaviour: the several ways of config/README.md load, but for the placeholders', () => {
  const readme = readFileSync(join(FOLDER, 'README.md'), 'utf8');
  const [, yaml = ''] = /^## Several ways to pay$[^]*?```yaml\n([^]*?)```/m.exec(readme) ?? [];
  const keys = newCdpAccount('ed25519');
  keepSecret('FACILITATOR_KEY', keys.secret);
  const filled = yaml
    .replace('0xYourAddress', ADDRESS)
    .replace('YourWallet', '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin');
  const env = { CDP_API_KEY_ID: keys.keyId, CDP_API_KEY_SECRET: keys.secret };
  expect(configOf(`registry: {}\n${filled}`, env).receivers).toMatchObject([
    { ways: [{ networkName: 'base' }, { networkName: 'solana' }] },
  ]);
});

describe('behaviour: what a comment calls a default changes nothing when it is written', () => {
  test.each(['all-in-one.yaml', 'sidecar.yaml', 'registry.yaml', 'postgres.yaml'])('%s has true defaults', (file) => {
    const text = readFileSync(join(FOLDER, file), 'utf8');
    // A commented-out key is "# key: value", maybe indented; prose has no colon right after its first word.
    const commented = /^( *)# ( *[a-z_0-9]+: .*)$/;
    const lines = text.split('\n');
    const whole = configOf(text, ENV);
    const defaults = lines.filter(
      (line) => commented.test(line) && !/no default|https?:\/\/\.\.\.|asset|secret|api_keys|facilitators:/.test(line),
    );
    expect(defaults.length).toBeGreaterThan(2);
    for (const line of defaults) {
      const written = lines
        .map((candidate) => (candidate === line ? candidate.replace(commented, '$1$2') : candidate))
        .join('\n');
      // A key of a section that is commented out as a whole needs its section.
      const section = /^# {3}/.test(line) ? written.replace(/^# charges:$/m, 'charges:') : written;
      expect.soft(configOf(section, ENV), line).toEqual(whole);
    }
  });
});
