// `npm run pay -- URL [METHOD]`: pays for a request with the public x402 client as it is, and shows the answer, the
// receipt and what is left of the demo's money. Needs `npm run demo` running beside it.
import { readFileSync } from 'node:fs';
import { createPublicClient, http, formatUnits } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { readArgs, type Args, type Flags } from '../../src/cli/args.ts';
import { runningDemos, type RunningDemo } from '../../src/cli/demos.ts';
import { USDC, USDC_ABI } from '../support/chain/chain.ts';
import { createPayer } from '../support/chain/payer.ts';
import { helpLines } from './help.ts';

const FLAGS = {
  data: { value: 'BODY', short: 'd', help: 'send this body, or that of a file: @FILE (METHOD is POST where left out)' },
  header: { value: "'NAME: VALUE'", short: 'H', multiple: true, help: 'send this header too; may be repeated' },
  demo: { value: 'PORT', help: 'where several demos run: the one whose proxy has this port' },
} as const satisfies Flags;
const USAGE = [
  'npm run pay -- URL [METHOD] [--data BODY] [--header NAME: VALUE]...',
  '',
  'Asks URL, pays what it demands with the test money of the demo that runs beside it, and shows the answer and the receipt.',
  'Exit code 0: answered 2xx. 1: any other answer. 64: usage. 69: nobody listens, or no demo runs.',
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
  const demo = findDemo(url, args.text('demo'));
  const before = await balanceOf(demo);
  const response = await ask(url, init, demo);
  const receipt = response.headers.get('payment-response');
  const refused = response.headers.get('tollgate-reason');
  console.log(`${response.status} ${response.statusText}${refused === null ? '' : ` (${refused})`}`);
  const location = response.headers.get('location');
  if (location !== null) console.log(`location: ${location}`);
  console.log((await response.text()).trim());
  console.log();
  console.log('receipt:', receipt === null ? 'none, nothing was charged' : Buffer.from(receipt, 'base64').toString());
  console.log(`balance: ${formatUnits(await balanceOf(demo), 6)} USDC (before: ${formatUnits(before, 6)})`);
  return response.ok ? 0 : 1;
}

function readRequest(args: Args): { url: URL; init: RequestInit } {
  const [text, word] = args.words;
  const url = text === undefined ? null : URL.parse(text);
  if (text !== undefined && /^[\w.-]+:\d+(?:\/|$)/.test(text))
    throw new Ended(64, `The scheme is missing: http://${text}`);
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new Ended(64, 'Which URL? For example: npm run pay -- http://127.0.0.1:8402/premium/report');
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

async function balanceOf({ rpc_url: rpcUrl, key }: RunningDemo): Promise<bigint> {
  const client = createPublicClient({ transport: http(rpcUrl, { retryCount: 0 }) });
  const args = [privateKeyToAccount(key).address];
  try {
    return BigInt(String(await client.readContract({ address: USDC, abi: USDC_ABI, functionName: 'balanceOf', args })));
  } catch {
    throw new Ended(69, 'The chain of the demo does not answer: stop the demo and start `npm run demo` again.');
  }
}

async function ask(url: URL, init: RequestInit, { key }: RunningDemo): Promise<Response> {
  const payer = await createPayer(undefined, 0n, key);
  try {
    return await payer.fetch(url.href, init);
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined;
    if (code === 'ECONNREFUSED' || code === 'ENOTFOUND')
      throw new Ended(69, `Nothing listens at ${url.origin} (${code}).`);
    if (cause instanceof Error) throw new Ended(69, `${url.origin} did not answer (${code ?? cause.message}).`);
    throw new Ended(1, `The payment could not be made: ${error instanceof Error ? error.message : String(error)}`);
  }
}

process.exit(
  await pay().catch((error: unknown) => {
    if (!(error instanceof Ended)) throw error;
    console.error(error.message);
    return error.code;
  }),
);
