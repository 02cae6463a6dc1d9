// `npm run demo`: the `demo` command with a chain and a facilitator of its own beside it, so that a newcomer sees a 402,
// pays it and is served within the first minute, with no wallet and no network. The chain's money is worth nothing.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { generatePrivateKey } from 'viem/accounts';
import { startChain } from '../support/chain/chain.ts';
import { startFacilitator } from '../support/chain/facilitator.ts';
import { createPayer } from '../support/chain/payer.ts';
import { writePurse, removePurse } from './purse.ts';

const MAIN = path.resolve(import.meta.dirname, '../../src/main.ts');
const FUNDS = 5_000_000n;

const chain = await startChain();
const facilitator = await startFacilitator({ rpcUrl: chain.rpcUrl });
const key = generatePrivateKey();
await createPayer(chain, FUNDS, key);
writePurse({ key, rpcUrl: chain.rpcUrl });

const tollgate = spawn(process.execPath, [MAIN, 'demo', '--facilitator', facilitator.url, '--rpc-url', chain.rpcUrl], {
  stdio: 'inherit',
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => tollgate.kill(signal));
const code = await new Promise<number>((resolve) => {
  tollgate.on('exit', (ended) => resolve(ended ?? 1));
});
removePurse();
await facilitator.close();
await chain.stop();
process.exit(code);
