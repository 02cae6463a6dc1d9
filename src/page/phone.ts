// What people without a wallet in this browser are offered: on a phone, links that open this address in the browser of a wallet;
// at a desk, what to install. Links only: nothing is loaded from there.
import { address } from './send.ts';
import { copyButton, element, type Card } from './view.ts';

/** How wallets open an address in their own browser. */
const APPS: readonly (readonly [name: string, link: (url: string) => string])[] = [
  ['MetaMask', (url) => `https://link.metamask.io/dapp/${url.replace(/^https?:\/\//, '')}`],
  ['Coinbase Wallet', (url) => `https://go.cb-w.com/dapp?cb_url=${encodeURIComponent(url)}`],
  ['Trust Wallet', (url) => `https://link.trustwallet.com/open_url?coin_id=60&url=${encodeURIComponent(url)}`],
];

export function noWalletCard(): Card {
  const actions = [{ label: 'Look for a wallet again', run: () => location.reload() }];
  const code = element('code', {}, address());
  const copy = [element('p', {}, code), copyButton(code, 'Copy this address')];
  if (!/Android|iPhone|iPad|iPod|Mobile/i.test(navigator.userAgent))
    return {
      title: 'No wallet was found',
      lines: [
        'Paying here needs a wallet that lives in this browser, such as MetaMask, Rabby or Coinbase Wallet. Install or unlock one, then look again.',
        'Or open this address in a browser that has one:',
      ],
      ...{ more: copy, actions },
    };
  const links = APPS.map(([name, link]) =>
    element('a', { class: 'button', href: link(address()), rel: 'noreferrer' }, `Open in ${name}`),
  );
  return {
    title: 'Open this in your wallet',
    lines: ['This browser has no wallet, but wallets have browsers. Choose yours, and this page opens in it:'],
    more: [element('div', { class: 'stack' }, ...links), element('p', {}, 'Or copy the address into it:'), ...copy],
    actions,
  };
}
