// Pays one request with mppx 0.11, unmodified: `node pay-mppx.mjs URL PRIVATE_KEY`. Prints status, receipt and body.
import { evm, Mppx } from 'mppx/client';
import { privateKeyToAccount } from 'viem/accounts';

const [url, key] = process.argv.slice(2);
const client = Mppx.create({ methods: [evm.charge({ account: privateKeyToAccount(key) })], polyfill: false });
const response = await client.fetch(url);
const receipt = response.headers.get('payment-response');
console.log(
  JSON.stringify({
    status: response.status,
    receipt: receipt && JSON.parse(Buffer.from(receipt, 'base64').toString()),
    body: await response.text(),
  }),
);
process.exit(0);
