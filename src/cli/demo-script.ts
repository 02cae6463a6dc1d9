// The text that the demo prints: commands to try in another terminal, each of which works as it stands.
import type { ConfigRoute } from '../config/config.ts';
import type { DemoWay } from './demo-config.ts';
import { examplePath } from './next-steps.ts';

export type Places = {
  readonly proxy: number;
  readonly registry: number;
  readonly admin: number;
  readonly token: string;
  /** One-time link to the page for owners; undefined if none could be made. */
  readonly deskLink: string | undefined;
  /** The words that run this program. */
  readonly program: string;
  readonly configFile: string;
  readonly ways: readonly Pick<DemoWay, 'network' | 'facilitator'>[];
  /** Whether `npm run pay` can pay: it has a purse for each way, on a chain of this machine. */
  readonly payable: boolean;
  /** The page for people has a wallet with test money. */
  readonly walletInPage: boolean;
  /** First route of the user's own API; undefined in front of the demo's API. */
  readonly own: Pick<ConfigRoute, 'route_pattern' | 'method'> | undefined;
};

type Step = readonly [title: string, ...commands: string[]];

export function demoScript(places: Places): string[] {
  const { own, program } = places;
  const steps = own === undefined ? stepsOfDemo(places) : stepsOfOwn(places, own);
  const next =
    own === undefined
      ? [
          'Next: put it in front of your own API with one command,',
          ...(places.payable
            ? [
                "  npm run demo -- --upstream http://localhost:3000 --route 'GET /reports/* 0.10 USD'",
                'and for others:',
              ]
            : []),
          `  ${program} --upstream http://localhost:3000 --route 'GET /reports/* 0.10 USD' --pay-to 0x...`,
          'or read "A test network, with your own wallet" in the README.',
        ]
      : [
          'Next: for others than yourself, with the address that is to be paid,',
          `  ${program} --upstream URL --route 'GET /reports/* 0.10 USD' --pay-to 0x...`,
        ];
  return [
    `Tollgate stands in front of ${own === undefined ? 'a small API' : 'your API'}.`,
    offered(places),
    ...(places.deskLink === undefined
      ? []
      : [
          `Its desk, for 5 minutes and one browser (again: ${places.program} desk --config ${places.configFile}):`,
          `  ${places.deskLink}`,
        ]),
    'In another terminal, try:',
    '',
    ...steps.flatMap(([title, ...commands], index) => [`# ${index + 1}. ${title}`, ...commands, '']),
    ...next,
    'Stop with Ctrl-C. Requests and payments show below.',
    '',
  ];
}

function offered({ ways, payable }: Places): string {
  const money = `It takes test USDC on ${ways.map(({ network }) => network).join(' and on ')}`;
  return payable
    ? `${money}: ${ways.length === 1 ? 'a chain' : 'chains'} of this machine, so no real money moves.`
    : `${money} from a wallet of yours; ${ways.map(({ facilitator }) => facilitator).join(' and ')} settles.`;
}

function stepsOfDemo(places: Places): Step[] {
  const { proxy, registry } = places;
  const paid = `http://127.0.0.1:${proxy}/premium/report`;
  const routes = `http://127.0.0.1:${registry}/v1/billing/protected-routes`;
  return [
    ['what no route protects passes', `curl -i http://127.0.0.1:${proxy}/hello`],
    ['what costs money is answered with 402 and what to pay', `curl -i ${paid}`],
    ...pay(places, paid, 'GET'),
    browser(places, paid),
    dashboard(places),
    [
      'change the price of that report, and see it changed at once',
      `ID=$(curl -s -H "Authorization: Bearer $TOKEN" '${routes}?q=/premium/report' | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')`,
      `curl -s -X PATCH -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"amount":"0.25"}' ${routes}/$ID`,
      `curl -s ${paid}`,
    ],
    ['programs find what is sold, and what it costs', `curl -s http://127.0.0.1:${proxy}/llms.txt`],
    ['a paused route costs nothing', `curl -i http://127.0.0.1:${proxy}/beta/feature`],
    ...earned(places),
  ];
}

function stepsOfOwn(places: Places, { route_pattern: pattern, method }: NonNullable<Places['own']>): Step[] {
  const verb = method === '*' ? 'GET' : method;
  const paid = `http://127.0.0.1:${places.proxy}${examplePath(pattern)}`;
  return [
    ['what costs money is answered with 402 and what to pay', `curl -i ${verb === 'GET' ? '' : `-X ${verb} `}${paid}`],
    ...pay(places, paid, verb),
    ...(verb === 'GET' ? [browser(places, paid)] : []),
    dashboard(places),
    ...earned(places),
  ];
}

function pay({ payable, ways }: Places, url: string, method: string): Step[] {
  if (!payable) return [];
  const title =
    'pay for it: the public x402 client signs, a facilitator settles on a chain of this machine, the answer comes';
  const target = `${url}${method === 'GET' ? '' : ` ${method}`}`;
  const others = ways.slice(1).map(({ network }) => `npm run --silent pay -- --network ${network} ${target}`);
  return [[title, `npm run --silent pay -- ${target}`, ...others]];
}

function browser({ walletInPage }: Places, url: string): Step {
  const wallet = walletInPage ? 'with the demo wallet that it finds there' : 'with a wallet of yours';
  return [`people pay on a page, ${wallet}: open ${url} in a browser`];
}

function dashboard({ registry, token }: Places): Step {
  return [
    'the routes, as a dashboard sees them (the token is good for an hour)',
    `TOKEN=${token}`,
    `curl -s -H "Authorization: Bearer $TOKEN" http://127.0.0.1:${registry}/v1/billing/protected-routes`,
  ];
}

function earned({ registry, admin, program, configFile }: Places): Step[] {
  return [
    [
      'what was earned, as a dashboard sees it, and what Prometheus reads',
      `curl -s -H "Authorization: Bearer $TOKEN" http://127.0.0.1:${registry}/v1/billing/summary`,
      `curl -s http://127.0.0.1:${admin}/metrics | grep tollgate_requests_total`,
    ],
    ['every charge', `${program} charges list --config ${configFile}`],
  ];
}
