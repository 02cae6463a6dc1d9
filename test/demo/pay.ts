// `npm run pay -- URL [METHOD]`: pays for a request with the public x402 client as it is, and shows the answer, the way
// that was paid, the receipt and what is left of the demo's money. Needs `npm run demo` running beside it.
import { readFileSync } from 'node:fs';
import { decodePaymentRequiredHeader } from '@x402/core/http';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { formatUnits } from 'viem';
import { readArgs, type Args, type Flags } from '../../src/cli/args.ts';
import { runningDemos, type RunningDemo } from '../../src/cli/demo-directory.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';
import { helpLines } from './help.ts';
import { openPurse, type OpenPurse } from './purse.ts';

const FLAGS = {
  network: { value: 'NAME', help: 'pay on this network of the demo (the first that URL offers if left out)' },
  data: { value: 'BODY', short: 'd', help: 'send this body, or that of a file: @FILE (METHOD is POST where left out)' },
  header: { value: "'NAME: VALUE'", short: 'H', multiple: true, help: 'send this header too; may be repeated' },
  demo: { value: 'PORT', help: 'where several demos run: the one whose proxy has this port' },
} as const satisfies Flags;
const USAGE = [
  'npm run pay -- [--network base-sepolia|solana-devnet] URL [METHOD] [--data BODY] [--header NAME: VALUE]...',
  '',
  'Asks URL, pays what it demands with the test money of the demo that runs beside it, and shows the answer and the receipt.',
  'Exit code 0: paid, or answered 2xx without. 1: refused. 64: usage. 69: nobody listens, or no demo runs.',
];

class Ended extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

async function pay(): Promise<number> {
  const read = readArgs(
    process.argv.slice(2),
    { ...FLAGS, help: { short: 'h', help: 'print this' } },
    { min: 0, max: 2 },
  );
  if (!read.ok) throw new Ended(64, [...read.problems, 'See `npm run pay -- --help`.'].join('\n'));
  const { args } = read;
  if (args.has('help')) {
    for (const line of helpLines(USAGE, FLAGS)) console.log(line);
    return 0;
  }
  const { url, init } = readRequest(args);
  const purses = await openPurses(findDemo(url, args.text('demo')), args.text('network'));
  const before = await balancesOf(purses);
  const { response, way } = await ask(url, init, purses);
  const answer = (await response.text()).trim();
  const after = await balancesOf(purses);
  const receipt = readReceipt(response);
  const refused = response.headers.get('tollgate-reason');
  console.log(`${response.status} ${response.statusText}${refused === null ? '' : ` (${refused})`}`);
  const location = response.headers.get('location');
  if (location !== null) console.log(`location: ${location}`);
  console.log(answer);
  console.log();
  const isPaid = receipt !== undefined && way !== undefined && isSuccess(receipt);
  if (isPaid) console.log(`paid: ${nameWay(way)}`);
  const isLower = before.some((balance, at) => balance > (after[at] ?? balance));
  console.log('receipt:', receipt ?? `none, ${whereIsTheMoney(response, answer, isLower)}`);
  for (const [at, { network }] of purses.entries())
    if (way === undefined || nameOf(way.network) === network.name)
      console.log(`balance on ${network.name}: ${inUnits(after[at])} USDC (before: ${inUnits(before[at])})`);
  return isPaid || response.ok ? 0 : 1;
}

function readRequest(args: Args): { url: URL; init: RequestInit } {
  const [text, word] = args.words;
  const url = text === undefined ? null : URL.parse(text);
  if (text !== undefined && /^[\w.-]+:\d+(?:\/|$)/.test(text))
    throw new Ended(64, `The scheme is missing: http://${text}`);
  const example = 'npm run pay -- http://127.0.0.1:8402/premium/report';
  if (text === undefined) throw new Ended(64, `Which URL? For example: ${example}`);
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new Ended(
      64,
      /^[a-z]{1,20}$/i.test(text) && word !== undefined
        ? `${text}: is not a URL; the URL comes first, then the method: npm run pay -- ${word} ${text}`
        : `${text}: is not a URL; write one such as ${example}`,
    );
  const data = args.text('data');
  const method = (word ?? (data === undefined ? 'GET' : 'POST')).toUpperCase();
  if (!/^[A-Z]{1,20}$/.test(method)) throw new Ended(64, `${word ?? ''}: is no method; write npm run pay -- URL POST`);
  if (data !== undefined && ['GET', 'HEAD'].includes(method)) throw new Ended(64, `--data: a ${method} has no body`);
  const headers = new Headers();
  for (const line of args.all('header')) {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*([\x20-\x7e]*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Ended(64, "--header: is no header; write 'Name: value'");
    headers.append(name, value);
  }
  // What was paid for is the redirect itself.
  const redirect = 'manual';
  return { url, init: { method, headers, redirect, ...(data === undefined ? {} : { body: bodyOf(data) }) } };
}

function bodyOf(data: string): string | Buffer<ArrayBuffer> {
  if (!data.startsWith('@')) return data;
  try {
    return readFileSync(data.slice(1));
  } catch {
    throw new Ended(64, `--data: the file ${data.slice(1)} cannot be read`);
  }
}

/** The demo whose proxy is asked; a server of somebody's own that settles with a demo's facilitator is paid from there. */
function findDemo(url: URL, port: string | undefined): RunningDemo {
  const demos = runningDemos();
  const portOf = ({ proxy }: RunningDemo): string => new URL(proxy).port;
  const [first] = demos;
  if (first === undefined)
    throw new Ended(69, 'There is no demo to pay in: start `npm run demo` in another terminal first.');
  const wanted = port ?? (isHere(url) ? url.port : undefined);
  const found =
    demos.find((demo) => portOf(demo) === wanted) ?? (port === undefined && demos.length === 1 ? first : undefined);
  if (found !== undefined) return found;
  throw new Ended(
    64,
    `Which demo's money? Name one of them: ${demos.map((demo) => `--demo ${portOf(demo)}`).join(', ')}`,
  );
}

function isHere({ hostname }: URL): boolean {
  return ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
}

/** That of `wanted`, or all of them. */
async function openPurses({ purses }: RunningDemo, wanted: string | undefined): Promise<OpenPurse[]> {
  const names = purses.map(({ network }) => network);
  const name = wanted === undefined ? undefined : (NETWORKS.find(wanted)?.name ?? wanted);
  if (name !== undefined && !names.includes(name))
    throw new Ended(64, `--network: ${name} is not offered by this demo; write ${names.join(' or ')}`);
  return Promise.all(purses.filter(({ network }) => name === undefined || network === name).map(openPurse));
}

async function balancesOf(purses: readonly OpenPurse[]): Promise<bigint[]> {
  try {
    return await Promise.all(purses.map(({ balance }) => balance()));
  } catch {
    throw new Ended(69, 'A chain of the demo does not answer: stop the demo and start `npm run demo` again.');
  }
}

type Way = ReturnType<typeof decodePaymentRequiredHeader>['accepts'][number];

/** `way`: the one that a payment was signed for. */
async function ask(
  url: URL,
  init: RequestInit,
  purses: readonly OpenPurse[],
): Promise<{ readonly response: Response; readonly way: Way | undefined }> {
  let way: Way | undefined;
  let offered: readonly Way[] = [];
  const client = new x402Client().onAfterPaymentCreation((context) => {
    way = context.selectedRequirements;
    return Promise.resolve();
  });
  for (const { payWith } of purses) payWith(client);
  const listen: typeof globalThis.fetch = async (...request) => {
    const response = await fetch(...request);
    const header = response.headers.get('payment-required');
    if (header !== null) offered = decodePaymentRequiredHeader(header).accepts;
    return response;
  };
  try {
    const response = await wrapFetchWithPayment(listen, client)(url.href, init);
    return { response, way };
  } catch (error) {
    const names = purses.map(({ network }) => network.name);
    if (offered.length > 0 && !offered.some(({ network }) => names.includes(nameOf(network))))
      throw new Ended(1, `${url.href} is not paid on ${names.join(' or ')}; it offers ${listNetworks(offered)}.`);
    const cause = error instanceof Error ? error.cause : undefined;
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined;
    if (code === 'ECONNREFUSED' || code === 'ENOTFOUND')
      throw new Ended(69, `Nothing listens at ${url.origin} (${code}).`);
    if (cause instanceof Error) throw new Ended(69, `${url.origin} did not answer (${code ?? cause.message}).`);
    throw new Ended(1, `The payment could not be made: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function nameOf(network: string): string {
  return NETWORKS.find(network)?.name ?? network;
}

function listNetworks(ways: readonly Way[]): string {
  return [...new Set(ways.map(({ network }) => nameOf(network)))].join(' and ');
}

function nameWay({ amount, network, payTo, scheme }: Way): string {
  return `${inUnits(BigInt(amount))} USDC on ${nameOf(network)} to ${payTo} (${scheme})`;
}

/** What each purse holds has six decimals. */
function inUnits(amount: bigint | undefined): string {
  return formatUnits(amount ?? 0n, 6);
}

/** As it came, in JSON. */
function readReceipt({ headers }: Response): string | undefined {
  const header = headers.get('payment-response');
  return header === null ? undefined : Buffer.from(header, 'base64').toString();
}

/** As the answer says it; a balance that is lower says more than an answer that says nothing. */
function whereIsTheMoney({ headers }: Response, answer: string, isLower: boolean): string {
  const isProblem = headers.get('content-type') === 'application/problem+json';
  const told = isProblem ? (JSON.parse(answer) as { readonly charged?: unknown; readonly retry_until?: unknown }) : {};
  const until = typeof told.retry_until === 'string' ? ` until ${told.retry_until}` : '';
  if (isLower || told.charged === true)
    return `and the money was taken: the very same payment may bring the answer${until}`;
  if (told.charged === 'unknown')
    return `and whether the money was taken is not known yet: it is settled or failed for good${until}`;
  return 'nothing was charged';
}

function isSuccess(receipt: string): boolean {
  return (JSON.parse(receipt) as { readonly success?: unknown }).success === true;
}

process.exit(
  await pay().catch((error: unknown) => {
    if (!(error instanceof Ended)) throw error;
    console.error(error.message);
    return error.code;
  }),
);
