// What the tests of the configuration share: text in, a Config or lines of problems out.
import type { LoadedConfig } from '../../src/config/config.ts';
import type { Env } from '../../src/config/environment.ts';
import { readConfig } from '../../src/config/load.ts';
import { formatProblem } from '../../src/config/problems.ts';
import { keepSecret } from '../support/canaries.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';

export const ADDRESS = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C';
export const SECRET = 'secret-secret-secret-secret-1234';
export const KEY = 'key-of-sixteen-c';
keepSecret('SECRET', SECRET);
keepSecret('KEY', KEY);

/** A valid receiver, to be indented under `receivers:`. */
export const RECEIVER = `
  - id: default
    network: base-sepolia
    pay_to_address: "${ADDRESS}"
    facilitators: [https://facilitator.example.com]`;

/** The problems of `text` as `line:column path: message`, in order; empty where it loads. */
export function problemsOf(text: string, env: Env = {}): string[] {
  const result = readConfig(text, { file: 't.yaml', path: '/srv/t.yaml', env, networks: NETWORKS });
  return result.ok ? [] : result.problems.map((problem) => formatProblem(problem).replace(/^t\.yaml:/, ''));
}

/** The Config that `text` means. Throws with the problems where it has any. */
export function configOf(text: string, env: Env = {}, path = '/srv/t.yaml'): LoadedConfig {
  const result = readConfig(text, { file: 't.yaml', path, env, networks: NETWORKS });
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
  return result.config;
}
