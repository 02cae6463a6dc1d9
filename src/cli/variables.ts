// The environment variables that a running server passes to the commands beside it, so that no terminal has to set
// them. Only those are passed whose values stand openly in the configuration. A secret is named and never told; in its
// place commands load a mark, and one that needs the secret itself says which variable to set.
import type { LoadedConfig } from '../config/config.ts';
import { ACCOUNT_VARIABLES } from '../config/facilitator-keys.ts';

const EXPRESSION = /(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}/g;
/** Keys of the configuration under which nothing is told; addresses of services may hold a key of their own. */
const SECRET = /secret|key|header|auth|rpc|facilitator|url$|pem|password|token/i;
const PUBLIC_URLS = new Set(['publicUrl', 'registryUrl']);

/** Variables that the text of a configuration names and the environment has, by name; null: not told. */
export function sharedVariables(
  text: string,
  config: LoadedConfig,
  env: Readonly<Record<string, string | undefined>>,
): Map<string, string | null> {
  const open: string[] = [];
  const secret: string[] = [];
  collect(config, false, open, secret);
  const variables = new Map<string, string | null>();
  const named = [...text.matchAll(EXPRESSION)].map(([, name = '']) => name);
  for (const name of [...named, ...(hasAccount(config) ? ACCOUNT_VARIABLES : [])]) {
    const value = env[name];
    if (value === undefined || value === '') continue;
    const told = open.some((each) => each.includes(value)) && !secret.some((each) => each.includes(value));
    variables.set(name, told ? value : null);
  }
  return variables;
}

/** Whether facilitator accounts are configured: their keys may come from variables that the text does not name. */
function hasAccount({ receivers }: LoadedConfig): boolean {
  return receivers.some(({ ways }) =>
    ways.some(({ facilitators }) => facilitators.some(({ auth }) => auth !== undefined && 'key' in auth)),
  );
}

function collect(value: unknown, hidden: boolean, open: string[], secret: string[]): void {
  if (typeof value === 'object' && value !== null) {
    for (const [name, member] of Object.entries(value)) {
      const hides = !PUBLIC_URLS.has(name) && !(Array.isArray(value) || value instanceof Map) && SECRET.test(name);
      collect(member, hidden || hides, open, secret);
    }
  } else if (['string', 'number', 'boolean'].includes(typeof value)) {
    (hidden ? secret : open).push(String(value));
  }
}
