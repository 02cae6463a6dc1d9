// Somebody pays in a real browser: the real program, a real chain and the reference facilitator, and a wallet that signs.
import { appendFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { devices, type Page } from 'playwright-core';
import { generatePrivateKey } from 'viem/accounts';
import type { BrowserWallet } from '../support/chain/browser-wallet.ts';
import { click, connect, createPageLab, shownCard, title, words } from '../support/page-lab.ts';
import { PAY_TO } from '../support/paid-tollgate.ts';

const LARGE = 'x'.repeat(2 * 1024 * 1024);
const WAYS = ['base-sepolia', 'polygon-amoy']
  .map((network) => `{ network: ${network}, pay_to_address: "${PAY_TO}", rpc_url: none }`)
  .concat(
    `{ network: "eip155:31337", asset: "0x${'2'.repeat(40)}", asset_decimals: 6, asset_name: TestCoin, asset_version: "1", pay_to_address: "${PAY_TO}", rpc_url: none }`,
  )
  .join(', ');
/** What the upstream waits for before it answers /reports/slow. */
let slow: Promise<unknown> = Promise.resolve();
const { paid, visit, openPage, funded, payFor } = createPageLab({
  routes: ['GET /reports/* 0.10', 'GET /priced 0.10'],
  receiver: ` }\n  - { id: two, facilitators: [http://127.0.0.1:1], accepts: [${WAYS}]`,
  more: [
    '  - { method: GET, route_pattern: /two, amount: "0.10", receiver_config_id: two }',
    '  - { method: GET, route_pattern: "/club/*", amount: "0.10", plan_id: club }',
    '  - { method: GET, route_pattern: /bundle, amount: "0.10", plan_id: bundle }',
    'selling:',
    '  plans:',
    '    - { id: club, cookie: true, passes: [{ id: day, amount: "0.50", seconds: 86400 }, { id: ten, amount: "0.75", uses: 10 }] }',
    '    - { id: bundle, single: false, passes: [{ id: hundred, amount: "0.60", uses: 100 }] }',
    'page: { name: Example Weather, support: "mailto:help@example.com" }',
    '',
  ].join('\n'),
  handle: (req, res) => {
    const path = req.url?.split('?')[0];
    const answers: Readonly<Record<string, readonly [status: number, type: string, body: string]>> = {
      '/reports/missing': [404, 'text/plain', 'no such report'],
      '/reports/web': [200, 'text/html', '<h1>hello</h1><script>alert(1)</script>'],
      '/reports/picture': [200, 'image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"/>'],
      '/reports/large': [200, 'text/plain', LARGE],
    };
    const [status, type, body] = answers[path ?? ''] ?? [
      200,
      'application/json',
      '{"rain":12345678901234567890,"wind":[1,2]}',
    ];
    void (path === '/reports/slow' ? slow : Promise.resolve()).then(() => {
      res.writeHead(status, { 'content-type': type });
      res.end(body);
    });
  },
});

test('behaviour: the page pays, shows the answer with its receipt, keeps it over a reload, and pays anew only on a click', async () => {
  const wallet = await funded();
  const before = await paid().earned();
  const { page, barriers } = await visit('/reports/q3?year=2026', [wallet]);
  await title(page, 'Pay with your wallet').waitFor();
  expect(await barriers()).toEqual([]);
  await connect(page);
  expect(await page.getByText('1.00 USDC').count()).toBe(1);
  expect(await barriers()).toEqual([]);
  await click(page, 'Pay 0.10 USDC');
  await title(page, 'Paid').waitFor();
  expect(await page.locator('.answer pre').textContent()).toBe(
    '{\n  "rain": 12345678901234567890,\n  "wind": [\n    1,\n    2\n  ]\n}',
  );
  expect(await barriers()).toEqual([]);
  expect(await paid().earned()).toBe(before + 100_000n);
  const [charge] = await paid().charges();
  const link = await page.locator('dl a').getAttribute('href');
  expect(link).toBe(`https://sepolia.basescan.org/tx/${String(charge?.['transaction'])}`);
  expect(await page.getByText(charge?.id ?? '?').count()).toBe(1);
  expect(paid().upstream.seen.at(-1)?.url).toBe('/reports/q3?year=2026');

  await page.reload();
  await title(page, 'Paid').waitFor();
  await words(page, 'It is shown again without a new payment.').waitFor();
  expect(await page.locator('.answer pre').textContent()).toContain('12345678901234567890');
  expect([wallet.signatures(), await paid().earned()]).toEqual([1, before + 100_000n]);

  await click(page, 'Pay again for a new answer');
  await connect(page);
  expect(await page.locator('.answer').count()).toBe(0);
  await click(page, 'Pay 0.10 USDC');
  await title(page, 'Paid').waitFor();
  expect([wallet.signatures(), await paid().earned()]).toEqual([2, before + 200_000n]);
});

test('behaviour: a reload before the answer is there asks with the same payment', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  slow = promise;
  const wallet = await funded();
  const before = await paid().earned();
  const { page } = await visit('/reports/slow', [wallet]);
  await connect(page);
  const asked = paid().upstream.seen.length;
  await click(page, 'Pay 0.10 USDC');
  await expect.poll(() => paid().upstream.seen.length).toBe(asked + 1);
  await page.reload();
  resolve();
  await title(page, 'Paid').waitFor();
  expect([wallet.signatures(), await paid().earned()]).toEqual([1, before + 100_000n]);
});

describe('a wallet', () => {
  test('behaviour: a wallet on another chain is switched to the network of the route', async () => {
    const wallet = await funded();
    wallet.chainId = 1;
    const { page } = await visit('/reports/q3', [wallet]);
    await connect(page);
    expect(wallet.asked.filter(({ method }) => method.startsWith('wallet_'))).toEqual([
      { method: 'wallet_switchEthereumChain', params: [{ chainId: '0x14a34' }] },
    ]);
  });

  test('behaviour: a wallet is told of a network that it does not know', async () => {
    const wallet = await funded();
    wallet.chainId = 1;
    wallet.chains.clear();
    const { page } = await visit('/reports/q3', [wallet]);
    await connect(page);
    expect(wallet.asked.find(({ method }) => method === 'wallet_addEthereumChain')?.params).toEqual([
      {
        ...{ chainId: '0x14a34', chainName: 'Base Sepolia', rpcUrls: ['https://sepolia.base.org'] },
        nativeCurrency: { name: 'Sepolia Ether', symbol: 'ETH', decimals: 18 },
        blockExplorerUrls: ['https://sepolia.basescan.org'],
      },
    ]);
  });

  test('behaviour: a wallet may refuse the network, the account and the signature, and is asked again', async () => {
    const wallet = await funded();
    wallet.chainId = 1;
    const { page, barriers } = await visit('/reports/q3', [wallet]);
    wallet.refuse('eth_requestAccounts', 4001);
    await click(page, 'Connect Test Wallet');
    await title(page, 'No account was chosen').waitFor();
    wallet.refuse('eth_requestAccounts', -32_002);
    await click(page, 'Try again');
    await title(page, 'Your wallet already asks something').waitFor();
    wallet.refuse('wallet_switchEthereumChain', 4001);
    await click(page, 'Try again');
    await title(page, 'The network was not changed').waitFor();
    await click(page, 'Switch to Base Sepolia');
    await title(page, 'Ready to pay').waitFor();
    wallet.refuse('eth_signTypedData_v4', 'ACTION_REJECTED');
    await click(page, 'Pay 0.10 USDC');
    await title(page, 'You did not sign').waitFor();
    expect(await barriers()).toEqual([]);
    expect(wallet.signatures()).toBe(0);
    await click(page, 'Pay 0.10 USDC');
    await title(page, 'Paid').waitFor();
  });

  test('behaviour: a prompt that was cancelled counts no more, whatever becomes of it', async () => {
    const wallet = await funded();
    const before = await paid().earned();
    const { page } = await visit('/reports/q3', [wallet]);
    await connect(page);
    const { promise, resolve } = Promise.withResolvers<void>();
    wallet.hold('eth_signTypedData_v4', promise);
    await click(page, 'Pay 0.10 USDC');
    await click(page, 'Cancel');
    await words(page, 'If your wallet still shows the prompt, close it there.').waitFor();
    resolve();
    await expect.poll(() => wallet.signatures()).toBe(1);
    await click(page, 'Pay 0.10 USDC');
    await title(page, 'Paid').waitFor();
    expect([wallet.signatures(), await paid().earned()]).toEqual([2, before + 100_000n]);
  });

  test('behaviour: a wallet without enough money is told what is missing, and looked at again', async () => {
    const wallet = await funded(20_000n);
    const { page, barriers } = await visit('/reports/q3', [wallet]);
    await click(page, 'Connect Test Wallet');
    await title(page, 'Too little money').waitFor();
    await words(page, '0.10 USDC is asked for, so 0.08 USDC is missing.').waitFor();
    expect(await barriers()).toEqual([]);
    await paid().chain.mint(wallet.address, 80_000n);
    await click(page, 'Check again');
    await title(page, 'Ready to pay').waitFor();
  });

  test('behaviour: a wallet that changes its network or account is looked at again', async () => {
    const wallet = await funded();
    const { page } = await visit('/reports/q3', [wallet]);
    await connect(page);
    await paid().chain.mint(wallet.address, 1_000_000n);
    await page.evaluate("walletChanged('accountsChanged')");
    await words(page, '2.00 USDC').waitFor();
    wallet.chainId = 1;
    wallet.refuse('wallet_switchEthereumChain', 4001);
    await page.evaluate("walletChanged('chainChanged')");
    await title(page, 'The network was not changed').waitFor();
  });

  test('behaviour: a wallet that only stands at window.ethereum pays too', async () => {
    const { page } = await visit('/reports/q3', [await funded(1_000_000n, { old: true })]);
    await connect(page, 'Connect Browser wallet');
    await click(page, 'Pay 0.10 USDC');
    await title(page, 'Paid').waitFor();
  });

  test('behaviour: a payer with several wallets chooses one', async () => {
    const [one, two] = [await funded(), await funded(1_000_000n, { name: 'Other Wallet' })];
    const { page, barriers } = await visit('/reports/q3', [one, two]);
    await title(page, 'Choose a wallet').waitFor();
    expect(await barriers()).toEqual([]);
    await connect(page, 'Other Wallet');
    await click(page, 'Pay 0.10 USDC');
    await title(page, 'Paid').waitFor();
    expect([one.signatures(), two.signatures()]).toEqual([0, 1]);
  });

  test('refuses: a signature of another key than the wallet’s account', async () => {
    const wallet = await funded(1_000_000n, { signsWith: generatePrivateKey() });
    const { page } = await visit('/reports/q3', [wallet]);
    await connect(page);
    await click(page, 'Pay 0.10 USDC');
    await title(page, 'The signature was not accepted').waitFor();
    await words(page, 'Nothing was charged.').waitFor();
  });
});

test('behaviour: several ways: one is chosen, and its network is switched to', async () => {
  const wallet = await funded();
  wallet.chains.add(80_002);
  const { page, barriers } = await visit('/two', [wallet]);
  await title(page, 'Pay with your wallet').waitFor();
  expect(await barriers()).toEqual([]);
  await page.getByLabel('0.10 USDC on Polygon Amoy').check();
  await click(page, 'Connect Test Wallet');
  await expect.poll(() => wallet.chainId).toBe(80_002);
  await title(page, 'Ready to pay').waitFor();
  expect(await page.locator('.panel dd').allInnerTexts()).toContain('Polygon Amoy');
});

test('behaviour: a network that neither the wallet nor the page knows has words', async () => {
  const { page } = await visit('/two', [await funded()]);
  await page.getByLabel('0.10 0x2222...2222 on eip155:31337').check();
  await click(page, 'Connect Test Wallet');
  await title(page, 'Your wallet does not know eip155:31337').waitFor();
});

test('behaviour: a page that no wallet in a browser can pay says so', async () => {
  const watched = await openPage();
  // As a page of Solana alone has it.
  await watched.page.route('**/reports/q3', async (route) => {
    const response = await route.fetch();
    const body = (await response.text()).replace(/(?<=id="data">).*?(?=<\/script>)/s, (data) =>
      JSON.stringify({ ...(JSON.parse(data) as object), ways: [] }),
    );
    await route.fulfill({ response, body });
  });
  await watched.page.goto(paid().url('/reports/q3'));
  await title(watched.page, 'A program pays this').waitFor();
  expect(await watched.barriers()).toEqual([]);
  await click(watched.page, 'Show the lines');
  expect(await watched.page.locator('#programs pre').first().isVisible()).toBe(true);
});

test('behaviour: a browser that keeps nothing pays too, and asks before the page is left', async () => {
  const wallet = await funded();
  const denied = "Object.defineProperty(globalThis, 'sessionStorage', { get() { throw new Error('denied'); } })";
  const { page, context } = await visit('/reports/q3', [wallet]);
  await context.addInitScript({ content: denied });
  await page.reload();
  await connect(page);
  await click(page, 'Pay 0.10 USDC');
  await title(page, 'Paid').waitFor();
  const asked = page.waitForEvent('dialog');
  const left = page.reload();
  await (await asked).accept();
  await left;
  await title(page, 'Pay with your wallet').waitFor();
});

describe('without a wallet', () => {
  test('behaviour: a desktop browser without a wallet is told what is needed', async () => {
    const { page, barriers } = await visit('/reports/q3?a=1');
    await title(page, 'No wallet was found').waitFor();
    expect(await page.locator('#pay code').textContent()).toBe(paid().url('/reports/q3?a=1'));
    expect(await barriers()).toEqual([]);
  });

  test('behaviour: a phone without a wallet is led to the browsers of wallets', async () => {
    const { page, barriers } = await visit('/reports/q3?a=1', [], devices['iPhone 15']);
    await title(page, 'Open this in your wallet').waitFor();
    const links = await page.locator('#pay a').evaluateAll((all) => all.map((link) => link.getAttribute('href')));
    const url = encodeURIComponent(paid().url('/reports/q3?a=1'));
    expect(links).toEqual([
      `https://link.metamask.io/dapp/${paid().url('/reports/q3?a=1').replace('http://', '')}`,
      `https://go.cb-w.com/dapp?cb_url=${url}`,
      `https://link.trustwallet.com/open_url?coin_id=60&url=${url}`,
      `https://phantom.app/ul/browse/${url}?ref=${encodeURIComponent(new URL(paid().url('/')).origin)}`,
      `https://web3.okx.com/download?deeplink=${encodeURIComponent(`okx://wallet/dapp/url?dappUrl=${url}`)}`,
      `https://rnbwapp.com/dapp?url=${url}`,
    ]);
    expect(await page.locator('#pay code').textContent()).toBe(paid().url('/reports/q3?a=1'));
    expect(await barriers()).toEqual([]);
  });

  test('behaviour: a browser without scripts reads the same facts', async () => {
    const { page } = await visit('/reports/q3', [], { javaScriptEnabled: false });
    await title(page, 'Paying needs JavaScript').waitFor();
    const text = await page.locator('body').innerText();
    for (const fact of [
      '0.10',
      'USD',
      '0.10 USDC on Base Sepolia',
      PAY_TO,
      'What happens to your money',
      'GET /reports/q3',
    ])
      expect(text).toContain(fact);
  });
});

describe('what comes in between', () => {
  test('behaviour: after a 503 the same payment is sent again', async () => {
    const wallet = await funded();
    const { page, barriers } = await visit('/reports/q3', [wallet]);
    await connect(page);
    paid().facilitator.fault('verify', { kind: 'answer', status: 500, body: 'away' }, 3);
    await click(page, 'Pay 0.10 USDC');
    await title(page, 'It cannot be answered right now').waitFor();
    expect(await barriers()).toEqual([]);
    paid().facilitator.clearFaults();
    await click(page, 'Ask again now');
    await title(page, 'Paid').waitFor();
    expect(wallet.signatures()).toBe(1);
  });

  test('behaviour: after a lost connection the same payment is sent again', async () => {
    const wallet = await funded();
    const { page, context } = await visit('/reports/q3', [wallet]);
    await connect(page);
    const { promise, resolve } = Promise.withResolvers<void>();
    wallet.hold('eth_signTypedData_v4', promise);
    await click(page, 'Pay 0.10 USDC');
    await title(page, 'Sign in Test Wallet').waitFor();
    await context.setOffline(true);
    resolve();
    await title(page, 'The connection was lost').waitFor();
    await context.setOffline(false);
    await click(page, 'Ask again now');
    await title(page, 'Paid').waitFor();
    expect(wallet.signatures()).toBe(1);
  });

  test('behaviour: 409 payment_in_use is asked again by itself; 429 as well', async () => {
    const wallet = await funded();
    const { page } = await visit('/reports/q3', [wallet]);
    await connect(page);
    let answers = [
      [409, 'payment_in_use'],
      [429, 'too_many_unsettled'],
    ] as const;
    await page.route('**/reports/q3', async (route) => {
      const [next, ...others] = answers as readonly (readonly [number, string])[];
      if (next === undefined || route.request().headers()['payment-signature'] === undefined) return route.continue();
      answers = others as unknown as typeof answers;
      const [status, code] = next;
      const problem = { type: `/problems/${code}`, title: code, status, detail: 'Later.', code };
      await route.fulfill({
        status,
        contentType: 'application/problem+json',
        headers: { 'retry-after': '1' },
        body: JSON.stringify(problem),
      });
    });
    await click(page, 'Pay 0.10 USDC');
    await shownCard(page, 'Your payment is being worked on');
    await shownCard(page, 'It cannot be answered right now');
    await title(page, 'Paid').waitFor();
    expect(wallet.signatures()).toBe(1);
  });

  test('behaviour: every reason of a refusal has words, and a new signature only on a click', async () => {
    const wallet = await funded();
    const { page } = await visit('/reports/q3', [wallet]);
    await connect(page);
    const unpaid = await fetch(paid().url('/reports/q3'));
    const required = unpaid.headers.get('payment-required') ?? '';
    let reason = '';
    await page.route('**/reports/q3', async (route) => {
      if (route.request().headers()['payment-signature'] === undefined) return route.continue();
      const receipt = Buffer.from(JSON.stringify({ success: false, errorReason: reason })).toString('base64');
      const headers = {
        'payment-required': required,
        'tollgate-reason': `payment_refused: ${reason}`,
        'payment-response': receipt,
      };
      await route.fulfill({ status: 402, contentType: 'application/json', headers, body: '{}' });
    });
    const cases = [
      ['invalid_exact_evm_insufficient_balance', 'Too little money'],
      ['invalid_exact_evm_payload_authorization_valid_before', 'The signature expired'],
      ['invalid_exact_evm_payload_authorization_valid_after', 'The signature is not valid yet'],
      ['invalid_exact_evm_signature', 'The signature was not accepted'],
      ['eip6492_factory_not_allowed', 'This smart wallet cannot pay here yet'],
      ['way_mismatch', 'The payment was not taken'],
    ] as const;
    for (const [index, [word, words]] of cases.entries()) {
      reason = word;
      await click(page, 'Pay 0.10 USDC');
      await title(page, words).waitFor();
      expect(wallet.signatures()).toBe(index + 1);
    }
  });

  test('behaviour: a payer is told what cannot be priced, or costs nothing any more, before anything is signed', async () => {
    const wallet = await funded();
    const { page } = await visit('/reports/q3', [wallet]);
    await connect(page);
    const problem = {
      type: '/problems/too_many_challenges',
      title: '',
      status: 429,
      detail: 'Ask later.',
      code: 'too_many_challenges',
    };
    await page.route('**/reports/q3', (route) =>
      route.fulfill({ status: 429, contentType: 'application/problem+json', body: JSON.stringify(problem) }),
    );
    await click(page, 'Pay 0.10 USDC');
    await title(page, 'It cannot be paid right now').waitFor();
    await page.unroute('**/reports/q3');
    await page.route('**/reports/q3', (route) => route.fulfill({ status: 200, body: 'free' }));
    await click(page, 'Try again');
    await title(page, 'It costs nothing at the moment').waitFor();
    expect(wallet.signatures()).toBe(0);
  });

  test('behaviour: 409 already_paid shows the receipt', async () => {
    const wallet = await funded();
    const { page } = await visit('/reports/q3', [wallet]);
    await connect(page);
    const receipt = { success: true, transaction: `0x${'ab'.repeat(32)}`, network: 'eip155:84532' };
    await page.route('**/reports/q3', async (route) => {
      if (route.request().headers()['payment-signature'] === undefined) return route.continue();
      const problem = {
        type: '/problems/already_paid',
        title: '',
        status: 409,
        detail: 'Do not pay again.',
        code: 'already_paid',
      };
      const headers = { 'payment-response': Buffer.from(JSON.stringify(receipt)).toString('base64') };
      await route.fulfill({
        status: 409,
        contentType: 'application/problem+json',
        headers,
        body: JSON.stringify(problem),
      });
    });
    await click(page, 'Pay 0.10 USDC');
    await title(page, 'This was paid already').waitFor();
    expect(await page.locator('dl a').getAttribute('href')).toBe(
      `https://sepolia.basescan.org/tx/${receipt.transaction}`,
    );
  });

  test('behaviour: a payment that was used up ends in a new one only on a click', async () => {
    const wallet = await funded();
    const { page } = await visit('/reports/q3', [wallet]);
    await connect(page);
    await click(page, 'Pay 0.10 USDC');
    await title(page, 'Paid').waitFor();
    // As if the tab had died behind the last byte, and been asked again too late.
    const [charge] = await paid().charges();
    await page.route('**/reports/q3', async (route) => {
      if (route.request().headers()['payment-signature'] === undefined) return route.continue();
      await route.fulfill({
        status: 402,
        headers: { 'payment-required': 'e30=', 'tollgate-reason': 'payment_already_used' },
      });
    });
    const kept = JSON.stringify({ kind: 'payment', header: 'x', accept: await paid().quote('/reports/q3') });
    await page.evaluate(`sessionStorage.setItem('tollgate 1 /reports/q3', ${JSON.stringify(kept)})`);
    await page.reload();
    await title(page, 'This payment was used already').waitFor();
    expect([wallet.signatures(), (await paid().charges())[0]?.id]).toEqual([1, charge?.id]);
  });
});

describe('an answer', () => {
  test('behaviour: an answer that is a picture is shown', async () => {
    const { page, barriers } = await payFor('/reports/picture');
    await title(page, 'Paid').waitFor();
    expect(await page.locator('.answer img').evaluate((image: { naturalWidth?: number }) => image.naturalWidth)).toBe(
      40,
    );
    expect(await barriers()).toEqual([]);
  });

  test('behaviour: a web page is not shown within this one; saved it is whole, and opened it runs no script', async () => {
    const { page, context, complaints } = await payFor('/reports/web');
    await title(page, 'Paid').waitFor();
    expect(await page.locator('.answer').innerText()).toContain('It is not shown within this one');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Save' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('web.html');
    const [opened] = await Promise.all([
      context.waitForEvent('page'),
      page.getByRole('link', { name: 'Open in a new tab' }).click(),
    ]);
    let dialogs = 0;
    opened.on('dialog', (dialog) => {
      dialogs++;
      void dialog.dismiss();
    });
    await opened.getByRole('heading', { name: 'hello' }).waitFor();
    expect(dialogs).toBe(0);
    // Its script was refused by the policy that it inherits.
    expect(complaints.every((complaint) => /script-src/.test(complaint))).toBe(true);
    complaints.length = 0;
  });

  test('behaviour: an answer over 1 MiB is shown, is not kept, and leaving it asks first', async () => {
    const { page } = await payFor('/reports/large');
    await title(page, 'Paid').waitFor();
    await words(page, 'too large to be kept in this tab').waitFor();
    expect((await page.locator('.answer pre').textContent())?.length).toBe(LARGE.length);
    const asked = page.waitForEvent('dialog');
    const reloaded = page.reload();
    const dialog = await asked;
    expect(dialog.type()).toBe('beforeunload');
    await dialog.accept();
    await reloaded;
    await words(page, 'was too large to be kept').waitFor();
    expect(await page.locator('.answer').count()).toBe(0);
  });

  test('behaviour: an answer that is not charged says so, and is asked for again with the same payment', async () => {
    const before = await paid().earned();
    const { page, barriers } = await payFor('/reports/missing');
    await title(page, 'The service answered 404').waitFor();
    await words(page, 'nothing was charged for it').waitFor();
    expect(await page.locator('.answer pre').textContent()).toBe('no such report');
    expect(await barriers()).toEqual([]);
    await click(page, 'Ask again with the same payment');
    await title(page, 'The service answered 404').waitFor();
    expect(await paid().earned()).toBe(before);
  });
});

describe('looks', () => {
  test('behaviour: the page is used by keyboard alone, and says what happens', async () => {
    const { page } = await visit('/reports/q3', [await funded()]);
    await title(page, 'Pay with your wallet').waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await title(page, 'Ready to pay').waitFor();
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Pay 0.10 USDC');
    await page.keyboard.press('Enter');
    await title(page, 'Paid').waitFor();
    expect(await page.evaluate('document.activeElement.id')).toBe('answer');
    expect(await page.locator('[role=status]').textContent()).toBe('Paid.');
  });

  test.each([
    ['light', 320],
    ['dark', 320],
    ['dark', 1440],
  ] as const)('behaviour: the page in %s at %d pixels is whole and has contrast', async (colorScheme, width) => {
    const options = { colorScheme, viewport: { width, height: 700 }, reducedMotion: 'reduce' as const };
    const { page, barriers } = await visit('/reports/q3', [await funded()], options);
    await title(page, 'Pay with your wallet').waitFor();
    expect(await barriers()).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    await connect(page);
    await click(page, 'Pay 0.10 USDC');
    await title(page, 'Paid').waitFor();
    expect(await barriers()).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
  });
});

describe('passes', () => {
  test('behaviour: a browser that buys a pass by seconds keeps it, and opens what it is good for without paying again', async () => {
    const wallet = await funded();
    const before = await paid().earned();
    const { page, context, barriers } = await visit('/club/first', [wallet]);
    await title(page, 'Pay with your wallet').waitFor();
    expect(await page.locator('.price').textContent()).toBe('0.10 USD for one request');
    const offered = page.locator('.offer').filter({ has: page.getByRole('heading', { name: 'Passes' }) });
    expect(await offered.locator('li').allInnerTexts()).toEqual([
      '0.50 USD for 1 day',
      expect.stringMatching(/^0\.75 USD for 10 requests\s+Not by a click: a program buys this\.$/),
    ]);
    // What a browser could not keep is not sold to it.
    expect(await page.locator('fieldset label').allInnerTexts()).toEqual([
      expect.stringContaining('0.10 USDC for one request on Base Sepolia'),
      expect.stringContaining('0.50 USDC for 1 day on Base Sepolia'),
    ]);
    expect(await barriers()).toEqual([]);
    await page.getByLabel(/for 1 day/).check();
    await connect(page);
    await click(page, 'Pay 0.50 USDC for 1 day');
    await title(page, 'Paid').waitFor();
    await words(page, '1 day, kept by this browser').waitFor();
    expect((await paid().earned()) - before).toBe(500_000n);
    // No page of the site can read it.
    expect(await page.evaluate('document.cookie')).toBe('');
    const cookie = (await context.cookies()).find(({ name }) => name === 'tollgate_pass');
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Lax', path: '/' });
    for (const target of ['/club/second', '/club/first']) {
      const opened = await page.goto(paid().url(target));
      expect([opened?.status(), opened?.headers()['tollgate-pass-left']]).toEqual([
        200,
        expect.stringMatching(/^86\d{3}s$/),
      ]);
      expect(await page.locator('body').innerText()).toContain('"rain"');
    }
    expect((await paid().earned()) - before).toBe(500_000n);
    const { page: other } = await visit('/club/second');
    await other.locator('.price').waitFor();
  });

  test('behaviour: a single request is paid as ever where passes stand beside it, also after a way back', async () => {
    const wallet = await funded();
    const before = await paid().earned();
    const { page } = await visit('/club/single', [wallet]);
    await connect(page);
    await click(page, 'Back');
    await page.getByLabel(/for 1 day/).check();
    await page.getByLabel(/for one request/).check();
    await connect(page);
    await click(page, 'Pay 0.10 USDC for one request');
    await title(page, 'Paid').waitFor();
    expect((await paid().earned()) - before).toBe(100_000n);
    await click(page, 'Pay again for a new answer');
    await title(page, 'Ready to pay').waitFor();
    expect(await page.getByRole('button', { name: 'Pay 0.10 USDC for one request' }).count()).toBe(1);
  });

  test('behaviour: where no single request is sold the page says what the price buys, and sells that', async () => {
    const wallet = await funded();
    const before = await paid().earned();
    const { page } = await visit('/bundle', [wallet]);
    await title(page, 'Pay with your wallet').waitFor();
    expect(await page.locator('.price').textContent()).toBe('0.60 USD for 100 requests');
    expect(await page.getByRole('heading', { name: 'Passes' }).count()).toBe(0);
    await connect(page);
    await click(page, 'Pay 0.60 USDC for 100 requests');
    await title(page, 'Paid').waitFor();
    expect((await paid().earned()) - before).toBe(600_000n);
  });
});

// The last ones of this file: from here on a quote holds for a second.
describe('a quote that is over', () => {
  let token: string;
  beforeAll(async () => {
    const { config, tollgate, cli } = paid();
    token = await cli('token');
    const { lines, signal, line } = tollgate();
    const before = lines.length;
    await appendFile(config, 'charges: { quote_ttl: 1s }\n');
    signal('SIGHUP');
    await line((each) => each.msg === 'configuration reloaded' && lines.indexOf(each) >= before);
  });

  /** Sets the price of /priced, as the dashboard does. */
  async function setPrice(amount: string): Promise<void> {
    const { url } = paid().tollgate();
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const list = await fetch(`${url('registry')}/v1/billing/protected-routes`, { headers });
    const { data } = (await list.json()) as {
      readonly data: readonly { readonly id: string; readonly route_pattern: string }[];
    };
    const priced = data.find(({ route_pattern }) => route_pattern === '/priced');
    const route = `${url('registry')}/v1/billing/protected-routes/${priced?.id}`;
    const { ok } = await fetch(route, { method: 'PATCH', headers, body: JSON.stringify({ amount }) });
    if (!ok) throw new Error('the price was not set');
  }

  /** Clicks `button` and lets the wallet sign what is asked for then, but only when its quote is over. */
  async function signTooLate(
    page: Page,
    wallet: BrowserWallet,
    button: string,
    meanwhile = (): Promise<void> => Promise.resolve(),
  ): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    wallet.hold('eth_signTypedData_v4', promise);
    await click(page, button);
    await expect.poll(() => wallet.asked.at(-1)?.method).toBe('eth_signTypedData_v4');
    await meanwhile();
    const { extra } = await paid().quote('/priced');
    const expiresAt = Buffer.from(extra.external_ref.slice('chg_'.length), 'base64url').readUInt32BE(52);
    await expect.poll(() => Date.now()).toBeGreaterThan(expiresAt * 1000);
    resolve();
  }

  test('behaviour: another price after the quote is over is shown, and signed only on a new click', async () => {
    const wallet = await funded();
    const { page } = await visit('/priced', [wallet]);
    await connect(page);
    await setPrice('0.20');
    await click(page, 'Pay 0.10 USDC');
    await title(page, 'The price has changed').waitFor();
    await words(page, 'It was 0.10 USDC and is 0.20 USDC now.').waitFor();
    expect(wallet.signatures()).toBe(0);
    // And while the wallet is open: the quote is over, the signed amount is too small.
    await signTooLate(page, wallet, 'Pay 0.20 USDC', () => setPrice('0.30'));
    await words(page, 'It was 0.20 USDC and is 0.30 USDC now.').waitFor();
    expect(await page.getByRole('button', { name: 'Pay 0.30 USDC' }).count()).toBe(1);
    expect(wallet.signatures()).toBe(1);
  });

  test('behaviour: a receipt names no charge if the quote was over before the payment came: it is another one', async () => {
    const wallet = await funded();
    const { page } = await visit('/reports/q3', [wallet]);
    await connect(page);
    await signTooLate(page, wallet, 'Pay 0.10 USDC');
    await title(page, 'Paid').waitFor();
    const [charge] = await paid().charges();
    const kept = await page.evaluate<string>("sessionStorage.getItem('tollgate 1 /reports/q3')");
    const { accept } = JSON.parse(kept) as { readonly accept: { readonly extra: { readonly external_ref: string } } };
    expect(accept.extra.external_ref).not.toBe(charge?.id);
    expect(await page.locator('.panel dt').allInnerTexts()).toEqual(['Amount', 'Transaction']);
    expect(await page.getByRole('button').allInnerTexts()).toEqual(['Pay again for a new answer']);
    expect(await page.getByText('chg_').count()).toBe(0);
  });

  test('behaviour: support is written to with the transaction if the quote was over', async () => {
    const wallet = await funded();
    const { page, barriers } = await visit('/reports/q3', [wallet]);
    await connect(page);
    const transaction = `0x${'ab'.repeat(32)}`;
    await page.route('**/reports/q3', async (route) => {
      if (route.request().headers()['payment-signature'] === undefined) return route.continue();
      const receipt = { success: true, transaction, network: 'eip155:84532' };
      const members = { charged: true, owed: true, support: 'mailto:help@example.com' };
      const problem = { type: '/problems/already_paid', title: '', status: 409, detail: 'Owed.', code: 'already_paid' };
      await route.fulfill({
        status: 409,
        contentType: 'application/problem+json',
        headers: { 'payment-response': Buffer.from(JSON.stringify(receipt)).toString('base64') },
        body: JSON.stringify({ ...problem, ...members }),
      });
    });
    await signTooLate(page, wallet, 'Pay 0.10 USDC');
    await title(page, 'Paid, and the answer cannot be had').waitFor();
    await words(page, 'Write to the address below and name the transaction').waitFor();
    expect(await page.getByRole('link', { name: 'Write to help@example.com' }).getAttribute('href')).toBe(
      `mailto:help@example.com?subject=Transaction%20${transaction}`,
    );
    expect(await page.getByText('chg_').count()).toBe(0);
    expect(await barriers()).toEqual([]);
  });
});
