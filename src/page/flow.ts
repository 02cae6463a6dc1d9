// The way from a wallet to a signed payment, one step after the other; what follows is delivery.ts'. While a payment is kept
// nothing else is signed. Whatever goes wrong ends in a card with words and a way on.
import { Delivery, type DeliveryDeps } from './delivery.ts';
import { findWallets } from './evm/wallet.ts';
import type { TabPayment } from './kept.ts';
import { isSameWay, money, readChoices, type Choice } from './required.ts';
import { askPrice, type PriceTold, address } from './send.ts';
import { element, facts, short, type Action, type Card, copyButton } from './view.ts';
import { faultOf, type Wallet } from './wallet.ts';
import { demandWords, faultWords, unpaidWords } from './words.ts';

/** For so long the first wallet is waited for; others are found later all the same. */
const WALLETS_MS = 400;

type Connected = { readonly wallet: Wallet; readonly account: string };

export class Flow {
  private readonly deps: Pick<DeliveryDeps, 'data' | 'view' | 'kept' | 'place'>;
  private readonly delivery: Delivery;
  private wallets: readonly Wallet[] = [];
  private choices: readonly Choice[];
  private choice: Choice | undefined;
  private connected: Connected | undefined;
  /** Of the connected account; undefined: not known. */
  private balance: bigint | undefined;
  /** `start` and `ready`: a wallet that comes or changes is shown at once, because nothing is under way. */
  private at: 'start' | 'ready' | 'elsewhere' = 'elsewhere';
  private readonly watched = new Set<Wallet>();
  /** Raised by each step: what a wallet answers to an earlier one, which was left, counts no more. */
  private step = 0;

  constructor(deps: Flow['deps']) {
    this.deps = deps;
    const anew = (): void => void this.payAnew();
    this.delivery = new Delivery({ ...deps, anew, demanded: (payment, told) => this.demanded(payment, told) });
    this.choices = readChoices(deps.data.required, deps.data);
    this.choice = this.choices[0];
  }

  begin(): void {
    findWallets((wallets) => {
      this.wallets = wallets;
      if (this.at === 'start') this.start();
    });
    const kept = this.deps.kept.read();
    if (kept?.kind === 'answer') return this.delivery.showKept(kept);
    if (kept?.kind === 'payment') return void this.delivery.send(kept, 1);
    if (this.choice === undefined) return this.start();
    this.show({ title: 'Looking for a wallet', busy: true });
    setTimeout(this.start, WALLETS_MS);
  }

  private show(card: Card, at: Flow['at'] = 'elsewhere'): void {
    this.at = at;
    this.deps.view.show(card);
  }

  // 1 A way and a wallet.

  private readonly start = (): void => {
    this.step++;
    if (this.choice === undefined) return this.show(NO_WAY_HERE);
    if (this.wallets.length === 0) return this.show(noWalletCard(), 'start');
    const isOnly = this.wallets.length === 1;
    const actions = this.wallets.map((wallet): Action => {
      const label = isOnly ? `Connect ${wallet.name}` : wallet.name;
      return { label, icon: wallet.icon, run: () => void this.connect(wallet), primary: isOnly };
    });
    const lines = ['Your wallet shows this page an account. Nothing is paid by that.'];
    const title = isOnly ? 'Pay with your wallet' : 'Choose a wallet';
    this.show({ title, lines, more: this.chooser(), actions }, 'start');
  };

  /** Nothing if there is nothing to choose. */
  private chooser(): readonly Node[] {
    if (this.choices.length < 2) return [];
    const labels = this.choices.map((choice) => {
      const input = element('input', { type: 'radio', name: 'way' });
      input.checked = choice === this.choice;
      input.addEventListener('change', () => {
        this.choice = choice;
      });
      const tag = choice.way.testnet ? element('span', { class: 'tag' }, 'test network') : undefined;
      const text = `${money(choice.way, choice.accept.amount)} on ${choice.way.title} `;
      return element('label', {}, input, element('span', {}, text, tag));
    });
    return [element('fieldset', {}, element('legend', {}, 'Pay with'), ...labels)];
  }

  private async connect(wallet: Wallet, anew = false): Promise<void> {
    const { choice } = this;
    if (choice === undefined) return this.start();
    const step = ++this.step;
    const lines = ['It asks whether this page may see an account.'];
    this.show({ title: `Waiting for ${wallet.name}`, busy: true, lines, actions: [this.back()] });
    try {
      const account = await wallet.connect(anew);
      if (step !== this.step) return;
      this.connected = { wallet, account };
    } catch (error) {
      if (step !== this.step) return;
      const again = { label: 'Try again', run: () => void this.connect(wallet), primary: true };
      return this.show({ ...faultWords(faultOf(error), 'account', choice), actions: [again, this.back()] });
    }
    if (!this.watched.has(wallet)) {
      this.watched.add(wallet);
      // Account or network are others than those that are shown.
      wallet.watch(() => {
        if (this.at === 'ready' && this.connected?.wallet === wallet) void this.connect(wallet);
      });
    }
    await this.prepare();
  }

  private back(): Action {
    return { label: 'Back', run: this.start };
  }

  // 2 The right network, and enough money.

  private readonly prepare = async (): Promise<void> => {
    const { connected, choice } = this;
    if (connected === undefined || choice === undefined) return this.start();
    const { wallet, account } = connected;
    const { title } = choice.way;
    const step = ++this.step;
    const actions = [{ label: `Switch to ${title}`, run: () => void this.prepare(), primary: true }, this.back()];
    try {
      if (!(await wallet.isOn(choice))) {
        const lines = [`${wallet.name} asks whether it may change its network.`];
        this.show({ title: `Switching to ${title}`, busy: true, lines, actions: [this.back()] });
        await wallet.switchTo(choice);
      }
      const isOn = await wallet.isOn(choice);
      const balance = isOn ? await wallet.balance(choice, account) : undefined;
      if (step !== this.step) return;
      if (!isOn) {
        const lines = [`This is paid on ${title}.`];
        return this.show({ title: 'Your wallet is on another network', tone: 'warn', lines, actions });
      }
      this.balance = balance;
      this.ready();
    } catch (error) {
      if (step !== this.step) return;
      this.show({ ...faultWords(faultOf(error), 'network', choice), actions });
    }
  };

  /** `words`: what came in between. */
  private ready(words: Partial<Card> = {}): void {
    const { connected, choice, balance } = this;
    if (connected === undefined || choice === undefined) return this.start();
    const { way, accept } = choice;
    const asked = BigInt(accept.amount);
    const more = [
      facts([
        ['Account', element('code', {}, short(connected.account))],
        ['Balance', balance === undefined ? undefined : money(way, balance)],
        ['Network', way.title],
      ]),
    ];
    const other = { label: 'Use another account', run: () => void this.connect(connected.wallet, true) };
    if (balance !== undefined && balance < asked) {
      const missing = `${money(way, asked)} is asked for, so ${money(way, asked - balance)} is missing. Send ${way.symbol} to this account on ${way.title}, or use another account.`;
      const check = { label: 'Check again', run: () => void this.prepare(), primary: true };
      const lines = [...(words.lines ?? []), missing];
      return this.show(
        { title: 'Too little money', tone: 'warn', lines, more, actions: [check, other, this.back()] },
        'ready',
      );
    }
    const pay = { label: `Pay ${money(way, accept.amount)}`, run: () => void this.pay(), primary: true };
    const lines = ['Your wallet shows what you sign: this amount, once, to the address on this page.'];
    this.show({ title: 'Ready to pay', lines, ...words, more, actions: [pay, other, this.back()] }, 'ready');
  }

  // 3 The price of this moment, and a signature for it.

  private async pay(): Promise<void> {
    const { connected, choice } = this;
    if (connected === undefined || choice === undefined) return this.start();
    const { wallet, account } = connected;
    this.show({ title: 'Asking for the price', busy: true });
    const { told, serverMs } = await askPrice();
    const toldMs = performance.now();
    if (told.kind === 'free') {
      const open = { label: 'Open it', run: reload, primary: true };
      const lines = ['Nothing was signed.'];
      return this.show({ title: 'It costs nothing at the moment', tone: 'ok', lines, actions: [open] });
    }
    if (told.kind !== 'demand') {
      const again = { label: 'Try again', run: () => void this.pay(), primary: true };
      return this.show({ ...unpaidWords(told), actions: [again, this.back()] });
    }
    const now = this.takeOver(told, choice.way);
    if (now === undefined) return this.show(GONE);
    if (now.accept.amount !== choice.accept.amount) return this.ready(demandWords(told, choice.accept.amount, now));
    const lines = [`${money(now.way, now.accept.amount)} on ${now.way.title}, once, to ${now.accept.payTo}.`];
    this.show({ title: `Sign in ${wallet.name}`, busy: true, lines, actions: [this.cancel()] });
    const step = ++this.step;
    try {
      // It may have gone elsewhere while the page waited.
      if (!(await wallet.isOn(now))) return await this.prepare();
      const { header } = await wallet.sign(now, account, serverMs + performance.now() - toldMs);
      // Signed after it was cancelled: forgotten, and never sent.
      if (step !== this.step) return;
      await this.delivery.send({ kind: 'payment', header, accept: now.accept });
    } catch (error) {
      if (step === this.step) this.ready(faultWords(faultOf(error), 'signature', now));
    }
  }

  private cancel(): Action {
    const lines = ['Nothing was charged. If your wallet still shows the prompt, close it there.'];
    const run = (): void => {
      this.step++;
      this.ready({ lines });
    };
    return { label: 'Cancel', run };
  }

  /** What is asked for now, in the same way; undefined: that is not offered any more. */
  private takeOver({ header }: PriceTold, way: Choice['way']): Choice | undefined {
    this.choices = readChoices(header, this.deps.data);
    const now = this.choices.find((each) => isSameWay(each.way, way));
    this.choice = now ?? this.choices[0];
    return now;
  }

  // 4 What the delivery cannot settle by itself.

  private demanded({ accept }: TabPayment, told: PriceTold): void {
    const way = this.deps.data.ways.find((each) => isSameWay(each, accept));
    const now = way === undefined ? undefined : this.takeOver(told, way);
    const words = demandWords(told, accept.amount, now);
    if (now !== undefined && this.connected !== undefined) return this.ready(words);
    const on =
      now === undefined ? { label: 'Load the page again', run: reload } : { label: 'Continue', run: this.start };
    this.show({ ...words, actions: [{ ...on, primary: true }] });
  }

  private readonly payAnew = async (): Promise<void> => {
    this.show({ title: 'Asking for the price', busy: true });
    const { told } = await askPrice();
    if (told.kind === 'free') return reload();
    if (told.kind !== 'demand') {
      const again = { label: 'Try again', run: () => void this.payAnew(), primary: true };
      return this.show({ ...unpaidWords(told), actions: [again] });
    }
    this.delivery.forget();
    this.deps.place(undefined);
    if (this.choice !== undefined) this.takeOver(told, this.choice.way);
    await this.prepare();
  };
}

const NO_WAY_HERE: Card = {
  title: 'A program pays this',
  lines: [
    'None of the ways to pay is one that a wallet in this browser can be asked for. An x402 client pays them: see "For programs" below.',
  ],
};

const GONE: Card = {
  ...{ title: 'What is asked for has changed', tone: 'warn' },
  lines: ['This way of paying is not offered at the moment. Nothing was signed.'],
  actions: [{ label: 'Load the page again', run: reload, primary: true }],
};

function reload(): void {
  location.reload();
}

// What people without a wallet in this browser are offered. On a phone: links that open this address in the browser of
// a wallet. At a desk: what to install. Only links: nothing is loaded from there.

/** How wallets open an address in their own browser. */
const APPS: readonly (readonly [name: string, link: (url: string) => string])[] = [
  ['MetaMask', (url) => `https://link.metamask.io/dapp/${url.replace(/^https?:\/\//, '')}`],
  ['Coinbase Wallet', (url) => `https://go.cb-w.com/dapp?cb_url=${encodeURIComponent(url)}`],
  ['Trust Wallet', (url) => `https://link.trustwallet.com/open_url?coin_id=60&url=${encodeURIComponent(url)}`],
];

function noWalletCard(): Card {
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
