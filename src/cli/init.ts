// `tollgate init`: writes a short tollgate.yaml with a word on each line, which `check` passes as it stands. What flags say is
// judged as for a start from flags. It never writes over a file.
import { existsSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { quickConfig } from '../config/quick.ts';
import { codeOf } from '../config/secret-files.ts';
import { NETWORKS } from '../gateway/rails/rails.ts';
import type { Args } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { reportProblems } from './configuration.ts';
import { NETWORK_NAMES } from './quick-flags.ts';

const DEFAULT_FILE = 'tollgate.yaml';
const DEFAULT_UPSTREAM = 'http://127.0.0.1:3000';
const DEFAULT_NETWORK = 'base-sepolia';

export const init: Command = {
  name: 'init',
  summary: 'write a short tollgate.yaml to start from',
  usage: [
    "tollgate init [--upstream URL] [--pay-to ADDRESS] [--network NAME] [--route 'GET /reports/* 0.10 USD']... [FILE]",
    '',
    `Writes ${DEFAULT_FILE}, or FILE, and never over a file that is there. \`tollgate check\` passes what it writes. What is left`,
    'out stands in the file as a comment.',
  ],
  examples: [
    "tollgate init --upstream http://localhost:3000 --pay-to 0xYourAddress --route 'GET /reports/* 0.10 USD'",
    'tollgate init --network solana staging.yaml',
  ],
  flags: {
    upstream: { value: 'URL', help: `the API to put behind the paywall (${DEFAULT_UPSTREAM} if left out)` },
    'pay-to': { value: 'ADDRESS', help: 'the address that receives the payments' },
    network: {
      value: 'NAME',
      choices: NETWORK_NAMES,
      help: `one of \`tollgate networks\` (${DEFAULT_NETWORK}, with test money, if left out)`,
    },
    route: {
      value: "'GET /reports/* 0.10 USD'",
      multiple: true,
      help: 'what costs how much; may be repeated',
    },
  },
  words: { min: 0, max: 1 },
  run: runInit,
};

async function runInit(args: Args, io: Io): Promise<ExitCode> {
  const [file = DEFAULT_FILE] = args.words;
  const payTo = args.text('pay-to');
  const upstream = args.text('upstream') ?? DEFAULT_UPSTREAM;
  const network = NETWORKS.find(args.text('network') ?? DEFAULT_NETWORK);
  const facilitator = network?.testnet === false ? 'payai' : 'x402.org';
  const nothing = { publicUrl: undefined, profile: undefined, listen: undefined, registryListen: undefined };
  const judged = quickConfig(
    {
      ...{ ...nothing, adminListen: undefined, data: undefined },
      ...{ upstream, routes: args.all('route'), payTo, facilitators: [facilitator] },
      network: args.text('network') ?? DEFAULT_NETWORK,
    },
    io.folder,
    io.env,
    NETWORKS,
  );
  // A configuration without routes may get its receiving address later.
  const isLater = payTo === undefined && !args.has('route');
  const problems = judged.ok ? [] : judged.problems.filter(({ path }) => !(isLater && path === '--pay-to'));
  if (problems.length > 0) {
    reportProblems(problems, io.err);
    return EXIT.usage;
  }
  const routes = judged.ok ? judged.config.routes : [];
  const text = writeStarter({ upstream, payTo, network: network?.name ?? DEFAULT_NETWORK, facilitator, routes });
  const place = resolve(io.folder, file);
  try {
    if (existsSync(place)) throw Object.assign(new Error('it is there'), { code: 'EEXIST' });
    writeFileSync(place, text, { flag: 'wx' });
  } catch (error) {
    const code = codeOf(error);
    io.err(
      code === 'EEXIST'
        ? `${file}: is there already and stays as it is; name another file`
        : `${file}: cannot be written (${code}); name a file in a folder that is there`,
    );
    return EXIT.usage;
  }
  const flag = file === DEFAULT_FILE ? '' : ` --config ${file}`;
  io.out(
    `Wrote ${file}.${payTo === undefined ? ' Write your address and your routes into it: they are comments so far.' : ''}`,
  );
  io.out('Next:');
  io.out(`  tollgate check${flag}`);
  io.out(`  tollgate serve${flag}`);
  return EXIT.fine;
}

type Starter = {
  readonly upstream: string;
  readonly payTo: string | undefined;
  readonly network: string;
  readonly facilitator: 'x402.org' | 'payai';
  readonly routes: readonly {
    readonly method: string;
    readonly route_pattern: string;
    readonly amount: string;
    readonly currency: string;
  }[];
};

function writeStarter({ upstream, payTo, network, facilitator, routes }: Starter): string {
  const who =
    facilitator === 'x402.org'
      ? 'for test networks alone; for real money: network base, and payai or cdp here'
      : 'who verifies and settles; or cdp, with CDP_API_KEY_ID and CDP_API_KEY_SECRET in the environment';
  const receivers = [
    line('receivers:', 'where money goes'),
    '  - id: default',
    line(`    network: ${network}`, '`tollgate networks` lists all'),
    line(`    pay_to_address: ${quoted(payTo ?? '0x...')}`, 'your address'),
    line(`    facilitators: [${facilitator}]`, who),
  ];
  const example = { method: 'GET', route_pattern: '/reports/*', amount: '0.10', currency: 'USD' };
  const priced = [
    line('routes:', 'what costs how much; every other path passes free'),
    ...(routes.length === 0 ? [example] : routes).map(
      ({ method, route_pattern, amount, currency }) =>
        `  - { method: ${quoted(method)}, route_pattern: ${quoted(route_pattern)}, amount: ${quoted(amount)}, currency: ${quoted(currency)} }`,
    ),
  ];
  return [
    '# Tollgate in front of one API. `tollgate check` says everything that is wrong with this file, `tollgate match METHOD',
    '# PATH` what a request would cost, `tollgate serve` runs it. config/README.md of the package lists every key.',
    '',
    'proxy:',
    line('  listen: 0.0.0.0:8402', 'clients connect here'),
    line(`  upstream: ${quoted(upstream)}`, 'your API: scheme, host and port'),
    line('  # public_url: https://api.example.com', 'where clients reach it: redirects within it are not charged'),
    line('  # upstream_profile: express', 'what it runs on; `tollgate probe --upstream URL --path PATH` finds out'),
    line('  undeclared_methods: pay', 'a method that no route names costs what its path costs'),
    '',
    'registry:',
    line('  listen: 127.0.0.1:8403', 'for dashboards and SDKs; `tollgate token` prints a token'),
    line('  store: sqlite:data/tollgate.db', 'made at the first start, with secrets of its own beside it'),
    '',
    ...(payTo === undefined ? receivers.map(commented) : receivers),
    '',
    ...(routes.length === 0 ? priced.map(commented) : priced),
    '',
  ].join('\n');
}

function line(text: string, comment: string): string {
  return `${text.padEnd(38)} # ${comment}`;
}

function quoted(text: string): string {
  return JSON.stringify(text).replaceAll('${', '$${');
}

function commented(line: string): string {
  return `# ${line}`;
}
