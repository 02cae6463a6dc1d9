// A wallet for the page for people, in the demo alone: a script with a hash of its own in the page's policy. It announces
// itself as wallets do (EIP-6963), asks before it signs, and has the demo's chain sign, which holds the key: there is none in
// the page. The page of Tollgate itself neither holds it nor may connect to a chain.
import { createHash } from 'node:crypto';
import type { PageWrapper } from '../../src/compose/proxy.ts';

export type Wallet = {
  /** Its chain holds the key. */
  readonly address: string;
  readonly rpcUrl: string;
};

const ICON =
  'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path fill="%23b45309" d="M0 0h8v8H0z"/><path fill="%23fff" d="M2 2h4v1h-1.5v3h-1v-3h-1.5z"/></svg>';

export function withWallet(wallet: Wallet): PageWrapper {
  const script = scriptOf(wallet);
  const hash = createHash('sha256').update(script).digest('base64');
  const loosen = (policy: string): string =>
    policy
      .replace("script-src '", `script-src 'sha256-${hash}' '`)
      .replace("connect-src 'self'", `connect-src 'self' ${wallet.rpcUrl}`);
  return (page) => (facts, added) => {
    const { status, body, headers } = page(facts, added);
    const at = headers.indexOf('Content-Security-Policy') + 1;
    // A public explorer knows no transaction of the demo's chain.
    const text = body
      .toString()
      .replaceAll(/"explorer":"[^"]*",/g, '')
      .replace('</head>', () => `<script>${script}</script></head>`);
    return {
      status,
      headers: headers.map((value, index) => (index === at ? loosen(value) : value)),
      body: text,
    };
  };
}

function scriptOf({ address, rpcUrl }: Wallet): string {
  return `'use strict';{
  const [address, rpcUrl] = ${JSON.stringify([address, rpcUrl])};
  const refuse = (code, message) => { throw Object.assign(new Error(message), { code }); };
  const rpc = async (method, params) => {
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const { error, result } = await (await fetch(rpcUrl, { method: 'POST', headers, body })).json();
    return error ? refuse(error.code, error.message) : result;
  };
  const sign = (text) => {
    const data = JSON.parse(text);
    if (data.primaryType !== 'TransferWithAuthorization') refuse(4200, 'the demo wallet signs payments alone');
    const { value, to } = data.message;
    const question = 'Demo wallet: pay ' + Number(value) / 1e6 + ' USDC (test money) to ' + to + '?';
    if (!confirm(question)) refuse(4001, 'not confirmed');
    return rpc('eth_signTypedData_v4', [address, data]);
  };
  const request = async ({ method, params = [] }) => {
    switch (method) {
      case 'eth_requestAccounts':
      case 'eth_accounts':
        return [address];
      case 'eth_chainId':
      case 'eth_call':
        return rpc(method, params);
      case 'eth_signTypedData_v4':
        return sign(params[1]);
      case 'wallet_switchEthereumChain':
        if (params[0].chainId === await rpc('eth_chainId', [])) return null;
        return refuse(4902, 'the demo wallet has one chain');
      default:
        return refuse(4200, method + ' is not for the demo wallet');
    }
  };
  const info = ${JSON.stringify({ uuid: 'a8f1b6c2-5d0e-4c39-9f4b-7a3d2e1c0b95', name: 'Demo wallet', icon: ICON, rdns: 'localhost.tollgate.demo' })};
  const detail = Object.freeze({ info: Object.freeze(info), provider: { request } });
  const announce = () => dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail }));
  addEventListener('eip6963:requestProvider', announce);
  announce();
}`;
}
