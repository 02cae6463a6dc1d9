// `npm run pay -- URL [METHOD]`: pays for a request with the public x402 client as it is, and shows the answer, the
// receipt and what is left of the demo's money. Needs `npm run demo` running beside it.
import { createPublicClient, http, formatUnits } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { USDC, USDC_ABI } from '../support/chain/chain.ts';
import { createPayer } from '../support/chain/payer.ts';
import { readPurse } from './purse.ts';

const [url, method = 'GET'] = process.argv.slice(2);
const purse = readPurse();
if (url === undefined || !URL.canParse(url)) {
  console.error('Which URL? For example: npm run pay -- http://127.0.0.1:8402/premium/report');
  process.exit(64);
}
if (purse === undefined) {
  console.error('There is no demo to pay in: start `npm run demo` in another terminal first.');
  process.exit(69);
}

const client = createPublicClient({ transport: http(purse.rpcUrl) });
const { address } = privateKeyToAccount(purse.key);
const balance = async (): Promise<bigint> =>
  BigInt(
    String(await client.readContract({ address: USDC, abi: USDC_ABI, functionName: 'balanceOf', args: [address] })),
  );

const before = await balance();
const payer = await createPayer(undefined, 0n, purse.key);
const response = await payer.fetch(url, { method });
const receipt = response.headers.get('payment-response');
console.log(`${response.status} ${response.statusText}`);
console.log((await response.text()).trim());
console.log();
console.log('receipt:', receipt === null ? 'none, nothing was charged' : Buffer.from(receipt, 'base64').toString());
console.log(`balance: ${formatUnits(await balance(), 6)} USDC (before: ${formatUnits(before, 6)})`);
process.exit(response.ok ? 0 : 1);
