// Help for people without a wallet in this browser. A phone gets links that open this address in a wallet's browser. A
// desktop gets wallets to install. If no way can be paid by a wallet here, the page shows the lines for programs. There
// are only links: nothing is loaded from those sites.
import type { PricedWay } from './required.ts';
import { address } from './send.ts';
import { showPrograms } from './programs.ts';
import { copyButton, element, type Card } from './view.ts';

type App = {
  readonly name: string;
  /** Opens `url` in the app's own browser, or says where to get the app. */
  readonly link: (url: string) => string;
  /** Networks that it knows; undefined: any of an EVM chain. */
  readonly networks?: ReadonlySet<string>;
};

const written = encodeURIComponent;

/** Ethereum, Base and Polygon, and their test networks. */
const PHANTOM: ReadonlySet<string> = new Set(
  [1, 8453, 137, 11_155_111, 84_532, 80_002].map((chainId) => `eip155:${chainId}`),
);

/**
 * Links as the wallets' documentation has them: MetaMask "Use deeplinks", Coinbase "Mobile dapp integration", Trust Wallet
 * "Deep Linking", Phantom "Browse", OKX "App Universal Link". Rainbow documents none; its app takes this one.
 */
const APPS: readonly App[] = [
  { name: 'MetaMask', link: (url) => `https://link.metamask.io/dapp/${url.replace(/^https?:\/\//, '')}` },
  { name: 'Coinbase Wallet', link: (url) => `https://go.cb-w.com/dapp?cb_url=${written(url)}` },
  {
    name: 'Trust Wallet',
    link: (url) => `https://link.trustwallet.com/open_url?coin_id=60&url=${written(url)}`,
  },
  {
    name: 'Phantom',
    link: (url) => `https://phantom.app/ul/browse/${written(url)}?ref=${written(new URL(url).origin)}`,
    networks: PHANTOM,
  },
  {
    name: 'OKX Wallet',
    link: (url) => `https://web3.okx.com/download?deeplink=${written(`okx://wallet/dapp/url?dappUrl=${written(url)}`)}`,
  },
  { name: 'Rainbow', link: (url) => `https://rnbwapp.com/dapp?url=${written(url)}` },
];

export function noWalletCard(choices: readonly PricedWay[]): Card {
  const actions = [{ says: 'Look for a wallet again', run: () => location.reload() }];
  const code = element('code', {}, address());
  const copy = [element('p', { class: 'place' }, code), copyButton(code, 'Copy this address')];
  if (!/Android|iPhone|iPad|iPod|Mobile/i.test(navigator.userAgent))
    return {
      headline: 'No wallet was found',
      sentences: [
        'Paying here needs a wallet that lives in this browser, such as MetaMask, Rabby or Coinbase Wallet. Install or unlock one, then look again.',
        'Or open this address in a browser that has one:',
      ],
      ...{ more: copy, actions },
    };
  const links = APPS.filter(
    ({ networks }) => networks === undefined || choices.some(({ way }) => networks.has(way.network)),
  ).map(({ name, link }) => element('a', { class: 'button', href: link(address()), rel: 'noreferrer' }, name));
  return {
    headline: 'Open this in your wallet',
    sentences: ['This browser has no wallet, but wallets have browsers. Choose yours, and this page opens in it:'],
    more: [
      element('div', { class: 'row' }, ...links),
      element('p', {}, 'Or copy the address into the browser of another one:'),
      ...copy,
    ],
    actions,
  };
}

/** No way is one that a page can ask a wallet for. */
export function programCard(): Card {
  return {
    headline: 'A program pays this',
    sentences: [
      'None of its ways can be paid by a click here. A few lines of code pay it, and so does an assistant that can buy things online: give it this address.',
    ],
    actions: [{ says: 'Show the lines', run: showPrograms, primary: true }],
  };
}
