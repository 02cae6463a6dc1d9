// Pays one request with x402-fetch 1.2.0, unmodified: `node pay.mjs URL PRIVATE_KEY`. Prints status, receipt and body.
import { privateKeyToAccount } from 'viem/accounts';
import { createWalletClient, http } from 'viem';
import { baseSepolia } from 'viem/chains';
import { decodeXPaymentResponse, wrapFetchWithPayment } from 'x402-fetch';

const [url, key] = process.argv.slice(2);
const wallet = createWalletClient({ account: privateKeyToAccount(key), chain: baseSepolia, transport: http() });
const pay = wrapFetchWithPayment(fetch, wallet);
const response = await pay(url);
const receipt = response.headers.get('x-payment-response');
console.log(
  JSON.stringify({
    status: response.status,
    receipt: receipt && decodeXPaymentResponse(receipt),
    body: await response.text(),
  }),
);
process.exit(0);
