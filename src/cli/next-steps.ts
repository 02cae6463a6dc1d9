// The next steps after a start from flags: see a 402, pay for it, look at the routes. Every line works in
// another terminal as it stands.
import { formatListen, isWildcard } from '../config/addresses.ts';
import type { LoadedConfig } from '../config/config.ts';
import type { RunningDemo } from './demo-directory.ts';

type StartedProgram = {
  readonly config: Pick<LoadedConfig, 'proxy' | 'receivers' | 'routes'>;
  readonly addresses: Readonly<Record<string, { readonly address: string; readonly port: number }>>;
  /** The words that run this program, and the flag that commands need to find its configuration; it begins with a space. */
  readonly program: string;
  readonly configFlag: string;
  readonly demos: readonly RunningDemo[];
};

/** The faucet of the issuer for test USDC on Base Sepolia. */
const FAUCET = 'https://faucet.circle.com';

export function nextSteps({ config, addresses, program, configFlag, demos }: StartedProgram): string[] {
  const [route] = config.routes;
  const proxy = urlOf(addresses['proxy']);
  const registry = urlOf(addresses['registry']);
  const command = (words: string): string => `${program} ${words}${configFlag}`;
  const protectedUrl = route && `${proxy}${examplePath(route.route_pattern)}`;
  const method = route === undefined || route.method === '*' ? 'GET' : route.method;
  const lines: [string, string][] =
    protectedUrl === undefined
      ? [[`curl -i ${proxy}/`, 'nothing costs anything yet: start it with a --route, or make routes over the registry']]
      : [
          [`curl -i ${method === 'GET' ? '' : `-X ${method} `}${protectedUrl}`, '402, and what to pay'],
          [
            command(`match ${method} ${examplePath(route?.route_pattern ?? '/')}`),
            'which route a request meets, and why',
          ],
        ];
  lines.push([`TOKEN=$(${command('token').replace(/^npm start/, 'npm run --silent start')})`, 'a dashboard token']);
  lines.push([
    `curl -s -H "Authorization: Bearer $TOKEN" ${registry}/v1/billing/protected-routes`,
    'the routes, as a dashboard sees them',
  ]);
  const width = Math.max(...lines.map(([left]) => left.length));
  const wide = width > 80;
  return [
    '',
    'Next, in another terminal:',
    ...lines.flatMap(([left, right]) =>
      wide ? [`  # ${right}`, `  ${left}`] : [`  ${left.padEnd(width)}  # ${right}`],
    ),
    '',
    ...toPay(config, protectedUrl, method, program, demos),
  ];
}

function toPay(
  { proxy, receivers }: StartedProgram['config'],
  url: string | undefined,
  method: string,
  program: string,
  demos: readonly RunningDemo[],
): string[] {
  const target = `${url ?? 'URL'}${method === 'GET' ? '' : ` ${method}`}`;
  const ways = receivers.flatMap((receiver) => receiver.ways);
  const asked = new Set(ways.flatMap(({ facilitators }) => facilitators.map((each) => new URL(each.url).origin)));
  const purses = demos.flatMap((demo) => demo.purses);
  const own = purses.find(({ facilitator }) => asked.has(new URL(facilitator).origin));
  if (own !== undefined)
    return [`To pay, with the money of the demo whose facilitator this is:`, `  npm run --silent pay -- ${target}`];
  const [way] = ways;
  const likely = purses.find(({ network }) => network === way?.networkName);
  if (likely !== undefined)
    return [
      `To pay: a demo runs on this machine; start this one again with --facilitator ${likely.facilitator}, then`,
      `  npm run --silent pay -- ${target}`,
    ];
  const testnet = way?.testnet === true;
  const wallet = testnet
    ? `a wallet with test USDC on ${way.networkName} (${FAUCET} gives some; it needs no ether)`
    : `a wallet with USDC on ${way?.networkName ?? 'the network of the receiver'} (it needs no ether)`;
  const lines = [`To pay: an x402 client such as @x402/fetch, and ${wallet}.`];
  if (program.startsWith('npm start'))
    lines.push(
      'Or without a wallet and a network, with a chain and a facilitator on this machine:',
      `  npm run demo -- --upstream ${proxy?.upstream.origin ?? 'URL'} --route 'GET /reports/* 0.10 USD'`,
    );
  return lines;
}

/** A path that the pattern covers, with words in place of its parameters. */
export function examplePath(pattern: string): string {
  return pattern.replace(/\/\*\w*$|\/\{\w+:path\}$/, '/example').replace(/:(\w+)|\{(\w+)(?::\w+)?\}/g, '1');
}

function urlOf(bound: { readonly address: string; readonly port: number } | undefined): string {
  if (bound === undefined) return '';
  const { address, port } = bound;
  return `http://${formatListen({ host: isWildcard(address) ? '127.0.0.1' : address, port })}`;
}
