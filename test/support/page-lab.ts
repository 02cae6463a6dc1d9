// The page for people, for one test file: a paid Tollgate over a real chain, a real browser, wallets with test money, and the
// words by which a test finds things on the page. Whatever the policy refuses or the page throws fails the test it happens in.
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { startBrowser, type TestBrowser, type WatchedPage } from './browser.ts';
import { createBrowserWallet, type BrowserWallet } from './chain/browser-wallet.ts';
import { startPaidTollgate, until, type PaidTollgate } from './paid-tollgate.ts';

export type PageLab = {
  readonly paid: () => PaidTollgate;
  readonly visit: (
    target: string,
    wallets?: readonly BrowserWallet[],
    options?: BrowserContextOptions,
  ) => Promise<WatchedPage>;
  /** A page that is nowhere yet. */
  readonly openPage: (wallets?: readonly BrowserWallet[], options?: BrowserContextOptions) => Promise<WatchedPage>;
  readonly funded: (funds?: bigint, options?: Parameters<typeof createBrowserWallet>[1]) => Promise<BrowserWallet>;
  /** Opens `target` with a wallet of its own and signs there. */
  readonly payFor: (
    target: string,
    options?: BrowserContextOptions,
  ) => Promise<WatchedPage & { readonly wallet: BrowserWallet }>;
};

/** Called once at the top of a test file. */
export function createPageLab(options: Parameters<typeof startPaidTollgate>[0]): PageLab {
  const open: WatchedPage[] = [];
  let paid: PaidTollgate;
  let browser: TestBrowser;
  beforeAll(async () => {
    [paid, browser] = await Promise.all([startPaidTollgate(options), startBrowser()]);
  }, 120_000);
  afterAll(async () => {
    await browser.close();
    await paid.stop();
  });
  afterEach(async () => {
    const complaints = open.flatMap((each) => each.complaints);
    await Promise.all(open.map(({ context }) => context.close()));
    open.length = 0;
    expect(complaints).toEqual([]);
  });
  const openPage: PageLab['openPage'] = async (wallets = [], contextOptions = {}) => {
    const watched = await browser.open(contextOptions, async (context) => {
      await keepCards(context);
      for (const wallet of wallets) await wallet.install(context);
    });
    open.push(watched);
    return watched;
  };
  const visit: PageLab['visit'] = async (target, wallets, contextOptions) => {
    const watched = await openPage(wallets, contextOptions);
    await watched.page.goto(paid.url(target));
    return watched;
  };
  const funded: PageLab['funded'] = async (funds = 1_000_000n, walletOptions) => {
    const wallet = createBrowserWallet(paid.chain, walletOptions);
    if (funds > 0n) await paid.chain.mint(wallet.address, funds);
    return wallet;
  };
  return {
    paid: () => paid,
    visit,
    openPage,
    funded,
    payFor: async (target, contextOptions) => {
      const wallet = await funded();
      const watched = await visit(target, [wallet], contextOptions);
      await connect(watched.page);
      await click(watched.page, 'Pay 0.10 USDC');
      return { ...watched, wallet };
    },
  };
}

/** A card that the page showed, as it was. */
export type ShownCard = {
  readonly headline: string;
  readonly text: string;
  readonly buttons: readonly string[];
  /** What the page says of the payment, above the card. */
  readonly state: string;
};

const CARDS = new WeakMap<Page, ShownCard[]>();

/** Hands every card to the test: one that goes by itself can be looked at in peace. */
async function keepCards(context: BrowserContext): Promise<void> {
  await context.exposeBinding('keepCard', ({ page }, card: ShownCard) => {
    CARDS.set(page, [...(CARDS.get(page) ?? []), card]);
  });
  await context.addInitScript({
    content: `
      let last;
      new MutationObserver(() => {
        const panel = document.querySelector('.panel');
        const heading = panel?.querySelector('h2');
        if (!heading || heading === last) return;
        last = heading;
        keepCard({
          headline: heading.innerText,
          text: panel.innerText,
          buttons: [...panel.querySelectorAll('button')].map((button) => button.innerText),
          state: document.querySelector('#state').innerText,
        });
      }).observe(document, { childList: true, subtree: true });`,
  });
}

/** The first card of this headline, as soon as the page showed it, whatever it shows now. */
export function shownCard(page: Page, headline: string): Promise<ShownCard> {
  const isIt = (card: ShownCard): boolean => card.headline === headline;
  return until(`the card "${headline}"`, async () => CARDS.get(page)?.find(isIt));
}

export const title = (page: Page, text: string): Locator => page.getByRole('heading', { name: text, exact: true });
export const words = (page: Page, text: string): Locator => page.locator('.panel').getByText(text);
export const click = (page: Page, name: string): Promise<void> =>
  page.getByRole('button', { name, exact: true }).click();

export async function connect(page: Page, name = 'Connect Test Wallet'): Promise<void> {
  await click(page, name);
  await title(page, 'Ready to pay').waitFor();
}
