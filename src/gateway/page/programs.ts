// The lines with which a program pays, as the page for people shows them: JavaScript with `@x402/fetch`, and the same by hand
// with curl. The page's program puts its whole address in, query included, and adds a button that copies each.
import { html } from '../../host/html.ts';

/** Clients of a chain family: its packages, and the lines that make a client of a private key. */
type Lines = { readonly packages: string; readonly code: readonly string[] };

const EVM: Lines = {
  packages: '@x402/fetch @x402/evm viem',
  code: [
    'import { wrapFetchWithPayment, x402Client } from "@x402/fetch";',
    'import { ExactEvmScheme } from "@x402/evm/exact/client";',
    'import { privateKeyToAccount } from "viem/accounts";',
    'const account = privateKeyToAccount(process.env.PRIVATE_KEY);',
    'const client = new x402Client().register("eip155:*", new ExactEvmScheme(account));',
  ],
};
const SOLANA: Lines = {
  packages: '@x402/fetch @x402/svm @solana/kit',
  code: [
    'import { wrapFetchWithPayment, x402Client } from "@x402/fetch";',
    'import { ExactSvmScheme } from "@x402/svm/exact/client";',
    'import { createKeyPairSignerFromBytes, getBase58Encoder } from "@solana/kit";',
    'const signer = await createKeyPairSignerFromBytes(getBase58Encoder().encode(process.env.PRIVATE_KEY));',
    'const client = new x402Client().register("solana:*", new ExactSvmScheme(signer));',
  ],
};

/** Writes the lines for programs. `url`: the request's, or its beginning. `isEvm`: some way is on an EVM chain. */
export function programLines(url: string, isEvm: boolean): string {
  const { packages, code } = isEvm ? EVM : SOLANA;
  const script = `${code.map(html).join('\n')}\nconst answer = await wrapFetchWithPayment(fetch, client)(<span data-url="js">${html(JSON.stringify(url))}</span>);`;
  const shell = `URL=<span data-url="sh">${html(shellWord(url))}</span>\ncurl -i "$URL"\ncurl -i "$URL" -H "PAYMENT-SIGNATURE: $SIGNED"`;
  return [
    '<details id="programs"><summary>For programs</summary>',
    `<p>Any x402 client pays this address. In JavaScript, after <code>npm install ${packages}</code>, with a private key in <code>PRIVATE_KEY</code>:</p>`,
    `<pre tabindex="0" role="region" aria-label="JavaScript"><code>${script}</code></pre>`,
    '<p>By hand, the first answer is 402 with <code>PAYMENT-REQUIRED</code>; the second request carries the signed payment:</p>',
    `<pre tabindex="0" role="region" aria-label="Commands"><code>${shell}</code></pre></details>`,
  ].join('');
}

/** Writes `url` as one word of a shell. */
function shellWord(url: string): string {
  return `'${url.replaceAll("'", "'\\''")}'`;
}
