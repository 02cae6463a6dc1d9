// The way from a wallet to a signed payment, one step after the other; what follows is delivery.ts'. While a payment is kept
// nothing else is signed. Whatever goes wrong ends in a card with words and a way on.
import { Delivery, type DeliveryDeps } from './delivery.ts';
import { findWallets } from './evm/wallet.ts';
import type { TabPayment } from './kept.ts';
import { bought, isSameWay, money, readChoices, shownChoices, wayOf, type Choice, type PricedWay } from './required.ts';
import { askPrice, type PriceDemand } from './send.ts';
import { element, facts, short, type Action, type Card } from './view.ts';
import { noWalletCard, programCard } from './no-wallet.ts';
import { faultOf, type Wallet } from './wallet.ts';
import { demandWords, faultWords, unpaidWords } from './words.ts';

/** Milliseconds to wait for the first wallet; later ones are still found. */
const WALLETS_MS = 400;

type ConnectedWallet = { readonly wallet: Wallet; readonly account: string };

export class Flow {
  private readonly deps: Pick<DeliveryDeps, 'data' | 'view' | 'kept' | 'place'>;
  private readonly delivery: Delivery;
  private wallets: readonly Wallet[] = [];
  private choices: readonly PricedWay[];
  private choice: PricedWay | undefined;
  private paired: ConnectedWallet | undefined;
  /** Balance of the paired account; undefined: not known. */
  private balance: bigint | undefined;
  /** Place in the flow. In `start` and `ready` nothing is under way: a wallet that comes or changes is shown at once. */
  private at: 'start' | 'ready' | 'elsewhere' = 'elsewhere';
  private readonly watched = new Set<Wallet>();
  /** Number that each step raises: a wallet's answer to an earlier step does not count. */
  private step = 0;

  constructor(deps: Flow['deps']) {
    this.deps = deps;
    const anew = (): void => void this.payAnew();
    this.delivery = new Delivery({ ...deps, anew, demanded: (payment, told) => this.demanded(payment, told) });
    this.choices = shownChoices(deps.data);
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
    this.showCard({ headline: 'Looking for a wallet', busy: true });
    setTimeout(this.start, WALLETS_MS);
  }

  private showCard(card: Card, at: Flow['at'] = 'elsewhere'): void {
    this.at = at;
    this.deps.view.showCard(card);
  }

  // Step 1: a way and a wallet.

  private readonly start = (): void => {
    this.step++;
    if (this.choice === undefined) return this.showCard(programCard());
    if (this.wallets.length === 0) return this.showCard(noWalletCard(this.choices), 'start');
    const isOnly = this.wallets.length === 1;
    const actions = this.wallets.map((wallet): Action => {
      const label = isOnly ? `Connect ${wallet.name}` : wallet.name;
      return { says: label, icon: wallet.icon, run: () => void this.connect(wallet), primary: isOnly };
    });
    const sentences = ['Your wallet shows this page an account. Nothing is paid by that.'];
    const title = isOnly ? 'Pay with your wallet' : 'Choose a wallet';
    this.showCard({ headline: title, sentences, more: this.chooser(), actions }, 'start');
  };

  /** Makes the choice of ways; nothing if there is only one. */
  private chooser(): readonly Node[] {
    if (this.choices.length < 2) return [];
    const labels = this.choices.map((choice) => {
      const input = element('input', { type: 'radio', name: 'way' });
      input.checked = choice === this.choice;
      input.addEventListener('change', () => {
        this.choice = choice;
      });
      const tag = choice.way.testnet ? element('span', { class: 'tag' }, 'test network') : undefined;
      const text = `${bought(choice.way, choice.accept.amount)} on ${choice.way.chainName} `;
      return element('label', {}, input, element('span', {}, text, tag));
    });
    return [element('fieldset', {}, element('legend', {}, 'Pay with'), ...labels)];
  }

  private async connect(wallet: Wallet, anew = false): Promise<void> {
    const { choice } = this;
    if (choice === undefined) return this.start();
    const step = ++this.step;
    const sentences = ['It asks whether this page may see an account.'];
    this.showCard({ headline: `Waiting for ${wallet.name}`, busy: true, sentences, actions: [this.back()] });
    try {
      const account = await wallet.connect(anew);
      if (step !== this.step) return;
      this.paired = { wallet, account };
    } catch (error) {
      if (step !== this.step) return;
      const again = { says: 'Try again', run: () => void this.connect(wallet), primary: true };
      return this.showCard({ ...faultWords(faultOf(error), 'account', choice), actions: [again, this.back()] });
    }
    if (!this.watched.has(wallet)) {
      this.watched.add(wallet);
      // Account or network are others than those that are shown.
      wallet.watch(() => {
        if (this.at === 'ready' && this.paired?.wallet === wallet) void this.connect(wallet);
      });
    }
    await this.prepare();
  }

  private back(): Action {
    return { says: 'Back', run: this.start };
  }

  // Step 2: the right network, and enough money.

  private readonly prepare = async (): Promise<void> => {
    const { paired, choice } = this;
    if (paired === undefined || choice === undefined) return this.start();
    const { wallet, account } = paired;
    const { chainName } = choice.way;
    const step = ++this.step;
    const actions = [{ says: `Switch to ${chainName}`, run: () => void this.prepare(), primary: true }, this.back()];
    try {
      if (!(await wallet.isOn(choice))) {
        const sentences = [`${wallet.name} asks whether it may change its network.`];
        this.showCard({ headline: `Switching to ${chainName}`, busy: true, sentences, actions: [this.back()] });
        await wallet.switchTo(choice);
      }
      const isOn = await wallet.isOn(choice);
      const balance = isOn ? await wallet.balance(choice, account) : undefined;
      if (step !== this.step) return;
      if (!isOn) {
        const sentences = [`This is paid on ${chainName}.`];
        return this.showCard({ headline: 'Your wallet is on another network', mood: 'warn', sentences, actions });
      }
      this.balance = balance;
      this.ready();
    } catch (error) {
      if (step !== this.step) return;
      this.showCard({ ...faultWords(faultOf(error), 'network', choice), actions });
    }
  };

  /** Shows that the payment can be signed, or `words` if something came in between. */
  private ready(words: Partial<Card> = {}): void {
    const { paired, choice, balance } = this;
    if (paired === undefined || choice === undefined) return this.start();
    const { way, accept } = choice;
    const asked = BigInt(accept.amount);
    const more = [
      facts([
        ['Account', element('code', {}, short(paired.account))],
        ['Balance', balance === undefined ? undefined : money(way, balance)],
        ['Network', way.chainName],
      ]),
    ];
    const other = { says: 'Use another account', run: () => void this.connect(paired.wallet, true) };
    if (balance !== undefined && balance < asked) {
      const missing = `${money(way, asked)} is asked for, so ${money(way, asked - balance)} is missing. Send ${way.symbol} to this account on ${way.chainName}, or use another account.`;
      const check = { says: 'Check again', run: () => void this.prepare(), primary: true };
      const sentences = [...(words.sentences ?? []), missing];
      return this.showCard(
        { headline: 'Too little money', mood: 'warn', sentences, more, actions: [check, other, this.back()] },
        'ready',
      );
    }
    const pay = { says: `Pay ${bought(way, accept.amount)}`, run: () => void this.pay(), primary: true };
    const sentences = ['Your wallet shows what you sign: this amount, once, to the address on this page.'];
    this.showCard({ headline: 'Ready to pay', sentences, ...words, more, actions: [pay, other, this.back()] }, 'ready');
  }

  // Step 3: the current price, and a signature for it.

  private async pay(): Promise<void> {
    const { paired, choice } = this;
    if (paired === undefined || choice === undefined) return this.start();
    const { wallet, account } = paired;
    this.showCard({ headline: 'Asking for the price', busy: true });
    const quotedAt = Date.now();
    const { told, serverMs } = await askPrice();
    const toldMs = performance.now();
    if (told.kind === 'free') {
      const open = { says: 'Open it', run: reload, primary: true };
      const sentences = ['Nothing was signed.'];
      return this.showCard({ headline: 'It costs nothing at the moment', mood: 'ok', sentences, actions: [open] });
    }
    if (told.kind !== 'demand') {
      const again = { says: 'Try again', run: () => void this.pay(), primary: true };
      return this.showCard({ ...unpaidWords(told.problem), actions: [again, this.back()] });
    }
    const now = this.takeOver(told, choice.way);
    if (now === undefined) return this.showCard(GONE);
    if (now.accept.amount !== choice.accept.amount) return this.ready(demandWords(told, choice.accept.amount, now));
    const sentences = [`${money(now.way, now.accept.amount)} on ${now.way.chainName}, once, to ${now.accept.payTo}.`];
    this.showCard({ headline: `Sign in ${wallet.name}`, busy: true, sentences, actions: [this.cancel()] });
    const step = ++this.step;
    try {
      // The wallet may have changed its network while the page waited.
      if (!(await wallet.isOn(now))) return await this.prepare();
      const { header } = await wallet.sign(now, account, serverMs + performance.now() - toldMs);
      // A signature that comes after the user cancelled is forgotten, and never sent.
      if (step !== this.step) return;
      await this.delivery.send({ kind: 'payment', header, accept: now.accept, quotedAt });
    } catch (error) {
      if (step === this.step) this.ready(faultWords(faultOf(error), 'signature', now));
    }
  }

  private cancel(): Action {
    const sentences = ['Nothing was charged. If your wallet still shows the prompt, close it there.'];
    const run = (): void => {
      this.step++;
      this.ready({ sentences });
    };
    return { says: 'Cancel', run };
  }

  /** Finds the current price of the same way; undefined if that way is not offered any more. */
  private takeOver({ header }: PriceDemand, way: PricedWay['way']): Choice | undefined {
    const choices = readChoices(header, this.deps.data);
    this.choices = choices;
    const now = choices.find((each) => isSameWay(each.way, way));
    this.choice = now ?? choices[0];
    return now;
  }

  // Step 4: endings that the delivery cannot settle by itself.

  private demanded({ accept }: TabPayment, told: PriceDemand): void {
    const way = wayOf(this.deps.data, accept);
    const now = way === undefined ? undefined : this.takeOver(told, way);
    const words = demandWords(told, accept.amount, now);
    if (now !== undefined && this.paired !== undefined) return this.ready(words);
    const on = now === undefined ? { says: 'Load the page again', run: reload } : { says: 'Continue', run: this.start };
    this.showCard({ ...words, actions: [{ ...on, primary: true }] });
  }

  private readonly payAnew = async (): Promise<void> => {
    this.showCard({ headline: 'Asking for the price', busy: true });
    const { told } = await askPrice();
    if (told.kind === 'free') return reload();
    if (told.kind !== 'demand') {
      const again = { says: 'Try again', run: () => void this.payAnew(), primary: true };
      return this.showCard({ ...unpaidWords(told.problem), actions: [again] });
    }
    this.delivery.forget();
    this.deps.place(undefined);
    if (this.choice !== undefined) this.takeOver(told, this.choice.way);
    await this.prepare();
  };
}

const GONE: Card = {
  ...{ headline: 'What is asked for has changed', mood: 'warn' },
  sentences: ['This way of paying is not offered at the moment. Nothing was signed.'],
  actions: [{ says: 'Load the page again', run: reload, primary: true }],
};

function reload(): void {
  location.reload();
}
