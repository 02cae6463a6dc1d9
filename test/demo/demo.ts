// `npm run demo`: the `demo` command with a chain and a facilitator of its own beside it, so that a newcomer sees a 402,
// pays it and is served within the first minute, with no wallet and no network, in front of a small API or of their own.
// The chain's money is worth nothing.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { generatePrivateKey } from 'viem/accounts';
import { readArgs } from '../../src/cli/args.ts';
import { DEMO_FLAGS, runDemo } from '../../src/cli/demo.ts';
import { registerDemo } from '../../src/cli/demos.ts';
import { processIo } from '../../src/cli/program.ts';
import { startChain } from '../support/chain/chain.ts';
import { startFacilitator } from '../support/chain/facilitator.ts';
import { createPayer } from '../support/chain/payer.ts';
import { helpLines } from './help.ts';

const FUNDS = 5_000_000n;
const USAGE = [
  "npm run demo [-- --upstream URL [--route 'GET /reports/* 0.10 USD']...]",
  '',
  'Runs Tollgate on this machine with a chain, a facilitator and a purse of test money, in front of a small API or, with',
  '--upstream, of yours. `npm run pay -- URL` pays. Nothing is kept, nothing leaves this machine.',
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
const chain = await startChain();
const facilitator = await startFacilitator({ rpcUrl: chain.rpcUrl });
const key = generatePrivateKey();
await createPayer(chain, FUNDS, key);
let removePurse = (): void => undefined;
// Also after an exception that nobody caught, and a second Ctrl-C.
process.on('exit', () => removePurse());
const code = await runDemo(given.args, io, {
  facilitator: facilitator.url,
  rpcUrl: chain.rpcUrl,
  payable: true,
  onListening: (proxy) => {
    removePurse = registerDemo({ pid: process.pid, proxy, facilitator: facilitator.url, rpc_url: chain.rpcUrl, key });
  },
});
removePurse();
await facilitator.close();
await chain.stop();
process.exit(code);
