// Passes as a buyer has them: bought by the public x402 client as it is, with one transfer on a real chain, and used until nothing
// is left, whatever dies meanwhile.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { wrapFetchWithSIWx } from '@x402/extensions/sign-in-with-x';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { keepSecret } from '../support/canaries.ts';
import { payerOf } from '../support/chain/payer.ts';
import { startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';

const PUBLIC = 'https://api.example.com';
const PLANS = `selling:
  plans:
    - { id: default, single: false, passes: [{ id: five, amount: "0.50", uses: 5 }] }
    - { id: other, single: false, passes: [{ id: day, amount: "0.90", seconds: 86400 }] }`;

/** A fetch for clients of the public URL, as a proxy in front would bring it here. */
function throughPublicUrl({ url }: Pick<PaidTollgate, 'url'>): typeof globalThis.fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const { pathname, search } = new URL(request.url);
    const response = await fetch(url(pathname + search), { method: request.method, headers: request.headers });
    return Object.defineProperty(response, 'url', { value: request.url });
  };
}

describe('passes, bought by an unmodified client', () => {
  let paid: PaidTollgate;
  let token = '';
  let served = 0;
  let fails = false;

  beforeAll(async () => {
    paid = await startPaidTollgate({
      handle: (_request, response) => {
        served += 1;
        response.statusCode = fails ? 500 : 200;
        response.end('answered');
      },
      routes: ['GET /report 0.10', 'GET /more 0.10'],
      proxy: `public_url: ${PUBLIC}`,
      more: PLANS,
    });
  });
  afterAll(async () => paid?.stop());

  const use = (target = '/report', pass = token): Promise<Response> =>
    fetch(paid.url(target), { headers: { 'tollgate-pass': pass } });
  type Sold = { readonly id: string; readonly payer: string };
  const sold = async (query = ''): Promise<{ readonly status: number; readonly data: readonly Sold[] }> => {
    const authorization = `Bearer ${await paid.cli('token')}`;
    const response = await fetch(`${paid.tollgate().url('registry')}/v1/billing/passes${query}`, {
      headers: { authorization },
    });
    return { status: response.status, ...((await response.json()) as { readonly data: readonly Sold[] }) };
  };
  const outstanding = async (): Promise<string | undefined> => {
    const text = await (await fetch(`${paid.tollgate().url('admin')}/metrics`)).text();
    return /^tollgate_pass_outstanding\{currency="USD"\} (.*)$/m.exec(text)?.[1];
  };
  const left = (response: Response): string | null => response.headers.get('tollgate-pass-left');

  test('behaviour: one transfer buys five uses, the first of them with the answer that it was bought with', async () => {
    const response = await paid.payer.fetch(paid.url('/report'));
    expect([response.status, await response.text(), left(response)]).toEqual([200, 'answered', '4']);
    token = response.headers.get('tollgate-pass') ?? '';
    keepSecret('a token of a pass', token);
    expect(token).toMatch(/^pass_[\w-]{1,155}$/);
    expect(await paid.earned()).toBe(500_000n);
  });

  test('behaviour: a use costs nothing more, on any route of the plan; an answer that is not charged is no use', async () => {
    const second = await use('/more');
    expect([second.status, left(second)]).toEqual([200, '3']);
    fails = true;
    const failed = await use();
    fails = false;
    expect([failed.status, left(failed)]).toEqual([500, '3']);
    expect(await paid.earned()).toBe(500_000n);
  });

  test('behaviour: the registry and a scrape say what was sold and not used yet', async () => {
    const { status, data } = await sold();
    expect(status).toBe(200);
    expect(data).toMatchObject([
      { status: 'live', plan: 'default', pass: 'five', sold: '5', drawn: '2', left: '3', reserved: '0', uses: 2 },
    ]);
    expect(data[0]?.payer).toBe(paid.payer.address.toLowerCase());
    expect(JSON.stringify(data)).not.toContain(token);
    expect(await outstanding()).toBe('0.3');
  });

  test('behaviour: a process that is killed has what is left when it starts again', async () => {
    await paid.restart();
    const third = await use();
    expect([third.status, left(third)]).toEqual([200, '2']);
    expect(await outstanding()).toBe('0.2');
  });

  test('attack: twenty requests at once have the two uses that are left, and no more', async () => {
    const before = served;
    const all = await Promise.all(Array.from({ length: 20 }, () => use()));
    const statuses = all.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(2);
    expect(statuses.filter((status) => ![200, 402, 409].includes(status))).toEqual([]);
    expect(served - before).toBe(2);
    await until('the pass is used up', async () => (await use()).headers.get('tollgate-reason') === 'pass_used_up');
    expect(await paid.earned()).toBe(500_000n);
    const [charge] = await paid.charges();
    expect(charge).toMatchObject({ status: 'delivered', amount_atomic: '500000' });
    const { data } = await sold('?live=false');
    expect(data).toMatchObject([{ id: charge?.['pass_id'], charge_id: charge?.id, status: 'used_up', left: '0' }]);
    expect(await outstanding()).toBeUndefined();
  });

  test('behaviour: a wallet that paid on the chain finds its pass by the signature of the public client, and no other wallet does', async () => {
    const [owner, stranger] = [generatePrivateKey(), generatePrivateKey()].map((key) => privateKeyToAccount(key));
    if (owner === undefined || stranger === undefined) throw new Error('no wallets');
    await paid.chain.mint(owner.address, 1_000_000n);
    const bought = await payerOf(paid.chain, owner).fetch(paid.url('/report'));
    expect(left(bought)).toBe('4');
    const earned = await paid.earned();
    const found = await wrapFetchWithSIWx(throughPublicUrl(paid), owner)(`${PUBLIC}/more`);
    expect([found.status, await found.text(), left(found)]).toEqual([200, 'answered', '3']);
    expect(found.headers.get('tollgate-pass')).toBe(bought.headers.get('tollgate-pass'));
    const unknown = await wrapFetchWithSIWx(throughPublicUrl(paid), stranger)(`${PUBLIC}/more`);
    expect([unknown.status, unknown.headers.get('tollgate-reason')]).toEqual([402, 'pass_unknown']);
    expect(await paid.earned()).toBe(earned);
  });

  test('refuses: a token that is changed or cut', async () => {
    const changed = `${token.slice(0, -4)}${token.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`;
    for (const pass of [changed, token.slice(0, -10)]) {
      const response = await use('/report', pass);
      expect([response.status, response.headers.get('tollgate-reason')]).toEqual([402, 'pass_unknown']);
    }
  });
});
