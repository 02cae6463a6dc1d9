// Reads a configuration without a file: `tollgate serve --upstream ... --route ... --pay-to ...`. The flags become the
// data that a file would hold, and the same schema judges them. Complaints name the flag instead of a line.
import type { Networks } from '../domain/payment/network.ts';
import type { LoadedConfig } from './config.ts';
import type { Env } from './environment.ts';
import type { ConfigProblem, Issue, Path } from './problems.ts';
import { validate } from './validate.ts';

export type QuickFlags = {
  readonly upstream: string | undefined;
  readonly publicUrl: string | undefined;
  readonly profile: string | undefined;
  /** Routes, each as `METHOD PATTERN AMOUNT [CURRENCY]`. */
  readonly routes: readonly string[];
  readonly payTo: string | undefined;
  readonly network: string | undefined;
  readonly facilitators: readonly string[];
  readonly listen: string | undefined;
  readonly registryListen: string | undefined;
  readonly adminListen: string | undefined;
  readonly data: string | undefined;
};

type QuickResult =
  /** The flags are right. `data` is what a file would hold; its paths are relative to the folder that was given. */
  | {
      readonly ok: true;
      readonly config: LoadedConfig;
      readonly data: QuickData;
      readonly network: string;
      readonly testnet: boolean;
    }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

export type QuickData = Readonly<Record<'proxy' | 'registry' | 'admin', Readonly<Record<string, unknown>>>> &
  Readonly<Record<string, unknown>>;

const DEFAULT_NETWORK = 'base-sepolia';
export const ROUTE_ADVICE = "write METHOD PATTERN AMOUNT and maybe CURRENCY, such as 'GET /reports/* 0.10 USD'";

export function quickConfig(flags: QuickFlags, folder: string, env: Env, networks: Networks): QuickResult {
  const problems: ConfigProblem[] = [];
  const complain = (flag: string, message: string): void => {
    problems.push({ file: undefined, line: 0, column: 0, path: flag, message });
  };
  if (flags.upstream === undefined)
    complain('--upstream', 'is missing; write the URL of your API, such as http://127.0.0.1:3000');
  if (flags.payTo === undefined)
    complain('--pay-to', 'is missing; write the address that receives the payments, 0x and 40 hex digits');
  const routes = flags.routes.map(readRoute);
  for (const [index, route] of routes.entries()) {
    if (route === undefined)
      complain(nameRoute(index), `${whatRouteLacks(flags.routes[index] ?? '')}; ${ROUTE_ADVICE}`);
  }
  const name = flags.network ?? DEFAULT_NETWORK;
  const network = networks.find(name);
  if (network === undefined || !network.tokens.some(({ symbol }) => symbol === 'USDC')) {
    const meant = network === undefined ? networks.suggest(name) : undefined;
    const advice = meant === undefined ? '`tollgate networks` lists them' : `did you mean ${meant}?`;
    complain('--network', `is not one whose USDC is known here; ${advice}`);
  } else if (network.name !== DEFAULT_NETWORK && flags.facilitators.length === 0) {
    complain(
      '--facilitator',
      `is missing; ${network.name} needs a facilitator that you have an account with: cdp, payai or a URL (only ${DEFAULT_NETWORK} has a public one)`,
    );
  }
  const facilitators = flags.facilitators.length > 0 ? flags.facilitators : ['x402.org'];
  const data = {
    proxy: {
      listen: flags.listen ?? '127.0.0.1:8402',
      upstream: flags.upstream,
      ...(flags.publicUrl === undefined ? {} : { public_url: flags.publicUrl }),
      ...(flags.profile === undefined ? {} : { upstream_profile: flags.profile }),
      // The shipped files say the same: an API that answers any method alike gives nothing away.
      undeclared_methods: 'pay',
    },
    registry: { ...listenAt(flags.registryListen), store: `sqlite:${flags.data ?? 'data'}/tollgate.db` },
    admin: listenAt(flags.adminListen),
    receivers: [{ id: 'default', network: name, pay_to_address: flags.payTo, facilitators }],
    routes: routes.map((route) => route ?? {}),
  };
  const surroundings = { issues: [], fromEnvironment: () => false, file: undefined, folder, env, networks };
  // A copy is judged: what is filled in there holds keys.
  const result = validate({ data: structuredClone(data), ...surroundings });
  if (!result.ok) {
    for (const issue of result.issues) {
      const flag = flagOf(issue);
      // A flag that is missing or unreadable as a whole gets one complaint.
      if (!problems.some(({ path }) => flag === path || flag.startsWith(`${path} `))) complain(flag, issue.message);
    }
  }
  if (!result.ok || problems.length > 0) return { ok: false, problems };
  return { ok: true, config: result.config, data, network: name, testnet: network?.testnet === true };
}

export function readRoute(text: string): Record<string, string> | undefined {
  const [method, pattern, amount, currency = 'USD', ...rest] = text.trim().split(/\s+/);
  if (method === undefined || pattern === undefined || amount === undefined || rest.length > 0) return undefined;
  if (method.startsWith('/')) return undefined;
  return { method, route_pattern: pattern, amount, currency };
}

function whatRouteLacks(text: string): string {
  return text.trim().startsWith('/') ? 'names no method (* is any)' : 'is not a route';
}

function listenAt(listen: string | undefined): { listen?: string } {
  return listen === undefined ? {} : { listen };
}

function nameRoute(index: number): string {
  return `--route (${index + 1}.)`;
}

const FLAGS: readonly { readonly path: Path; readonly flag: string }[] = [
  { path: ['proxy', 'upstream'], flag: '--upstream' },
  { path: ['proxy', 'public_url'], flag: '--public-url' },
  { path: ['proxy', 'upstream_profile'], flag: '--profile' },
  { path: ['proxy', 'listen'], flag: '--listen' },
  { path: ['registry', 'listen'], flag: '--registry-listen' },
  { path: ['admin', 'listen'], flag: '--admin-listen' },
  { path: ['registry', 'store'], flag: '--data' },
  { path: ['receivers', 0, 'pay_to_address'], flag: '--pay-to' },
  { path: ['receivers', 0, 'facilitators'], flag: '--facilitator' },
  { path: ['receivers', 0], flag: '--network' },
];

function flagOf({ path }: Issue): string {
  const [section, index, field] = path;
  if (section === 'routes' && typeof index === 'number') {
    return field === undefined ? nameRoute(index) : `${nameRoute(index)} ${field}`;
  }
  return FLAGS.find((entry) => entry.path.every((step, at) => step === path[at]))?.flag ?? path.join('.');
}
