// `npm run demo`: the `demo` command with chains and facilitators of its own beside it, so that a newcomer sees a 402,
// pays it and is served within the first minute, with no wallet and no network, in front of a small API or of their own.
// The money of these chains is worth nothing.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { readArgs } from '../../src/cli/args.ts';
import { DEMO_FLAGS, runDemo } from '../../src/cli/demo.ts';
import { registerDemo } from '../../src/cli/demo-directory.ts';
import { processIo } from '../../src/cli/entry.ts';
import { startBaseSepolia, startSolanaDevnet } from './chains.ts';
import { helpLines } from './help.ts';
import { withWallet } from './wallet.ts';

const USAGE = [
  "npm run demo [-- --upstream URL [--route 'GET /reports/* 0.10 USD']... --port N]",
  '',
  'Runs Tollgate on this machine with two chains (base-sepolia and solana-devnet), facilitators and test money, in front',
  'of a small API or, with --upstream, of yours. `npm run pay -- URL` pays; so does the page that a browser shows, with a',
  'demo wallet. Nothing is kept, nothing leaves this machine.',
];

const given = readArgs(
  process.argv.slice(2),
  { ...DEMO_FLAGS, help: { short: 'h', help: 'print this' } },
  { min: 0, max: 0 },
);
if (!given.ok) {
  for (const problem of given.problems) console.error(problem);
  console.error('See `npm run demo -- --help`.');
  process.exit(64);
}
if (given.args.has('help')) {
  for (const line of helpLines(USAGE, DEMO_FLAGS)) console.log(line);
  process.exit(0);
}

const { version } = JSON.parse(readFileSync(path.join(import.meta.dirname, '../../package.json'), 'utf8')) as {
  version: string;
};
const io = processIo({
  version,
  write: (text) => void process.stdout.write(text),
  exitNow: (code) => process.exit(code),
});
const [baseSepolia, solanaDevnet] = await Promise.all([startBaseSepolia(), startSolanaDevnet()]);
if (solanaDevnet === undefined)
  io.err('solana-devnet is not offered: its virtual machine (the package litesvm) is not built for this platform.');
const chains = solanaDevnet === undefined ? [baseSepolia] : [baseSepolia, solanaDevnet];
let removePurses = (): void => undefined;
// Also after an exception that nobody caught, and a second Ctrl-C.
process.on('exit', () => removePurses());
const code = await runDemo(given.args, io, {
  ways: chains.map(({ way }) => way),
  payable: true,
  aroundPage: withWallet(baseSepolia.wallet),
  onListening: (proxy) => {
    removePurses = registerDemo({ pid: process.pid, proxy, purses: chains.map(({ purse }) => purse) });
  },
});
removePurses();
for (const { stop } of chains) await stop();
process.exit(code);
