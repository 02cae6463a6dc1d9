// When a way on Solana is offered, and what an operator is told where it is not: at the start, later, and by
// `tollgate check --online`. Over a real virtual machine; time is what the test says.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RailOffer, Way } from '../../../../src/domain/payment/way.ts';
import type { WayServices } from '../../../../src/domain/payment/offer.ts';
import { checkReceivers } from '../../../../src/gateway/rails/online-check.ts';
import { findTokenAccount } from '../../../../src/gateway/rails/svm/addresses.ts';
import { createAuthorize } from '../../../../src/gateway/rails/x402/auth.ts';
import { createRandom, systemClock } from '../../../../src/host/clock.ts';
import { startSvm, SVM_NETWORK, SVM_USDC, type SvmChain } from '../../../support/svm/chain.ts';
import { keyOf, PROGRAMS } from '../../../support/svm/wire.ts';
import { deadUrl, facilitatorAt, json, makeRail, startScripted, type Scripted } from '../kit.ts';

const [FEE_PAYER, OTHER_FEE_PAYER, SHOP, MINT] = ['fee payer', 'other', 'shop', 'mint'].map(
  (name) => keyOf(name).address,
);
const ACCOUNT = findTokenAccount(SHOP ?? '', SVM_USDC) ?? '';
const WAY: Way = {
  ...{ receiverId: 'default', network: SVM_NETWORK, scheme: 'exact', asset: SVM_USDC, decimals: 6, payTo: SHOP ?? '' },
  ...{ timeoutSeconds: 300, terms: {} },
};

let chain: SvmChain;
const servers: Scripted[] = [];
beforeEach(async () => {
  chain = await startSvm();
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map(({ close }) => close()));
  await chain.stop();
});

/** A facilitator that names this fee payer; undefined: it is down. */
async function startNaming(feePayer: string | undefined): Promise<Scripted & { feePayer: string | undefined }> {
  const scripted = await startScripted((req, res) => {
    if (req.url === '/verify') return json(res, { isValid: false, invalidReason: 'invalid_payload' });
    const kind = { x402Version: 2, scheme: 'exact', network: SVM_NETWORK, extra: { feePayer: naming.feePayer } };
    return naming.feePayer === undefined ? json(res, { error: 'down' }, 500) : json(res, { kinds: [kind] });
  });
  const naming = Object.assign(scripted, { feePayer });
  servers.push(naming);
  return naming;
}

function servicesAt(facilitators: readonly Scripted[], rpcUrls: readonly string[] = [chain.rpcUrl]): WayServices {
  const asked = facilitators.map(({ url }) => facilitatorAt(url));
  return { facilitators: asked, rpcUrls, rpcPublic: false, confirmations: 1 };
}

/** A rail that watches `ways`, in turns of a test's own time; the first is made at once. */
async function watch(services: (way: Way) => WayServices, ways: readonly Way[] = [WAY]) {
  let now = 0;
  const due: { readonly ms: number; readonly run: () => void }[] = [];
  const { rail, lines } = makeRail({
    services,
    clock: { now: () => now, monotonic: () => now },
    schedule: (ms, run) => {
      due.push({ ms, run });
      return () => undefined;
    },
  });
  const stop = rail.watch(() => ways);
  await expect.poll(() => due.length).toBe(1);
  const turn = async (): Promise<void> => {
    const next = due.shift();
    expect(next?.ms).toBe(1000);
    now += 1000;
    next?.run();
    await expect.poll(() => due.length, { interval: 1 }).toBe(1);
  };
  return {
    rail,
    lines,
    stop,
    /** A turn is made every second. */
    pass: async (seconds: number): Promise<void> => {
      for (let turns = 0; turns < seconds; turns++) await turn();
    },
    feePayer: (way: Way = WAY): unknown => {
      const offer: RailOffer = { way, amount: 1n, resource: undefined, description: '' };
      const entry = rail.requirement(offer, { chargeId: 'chg_1', upfront: false }, 2) as
        | { extra: { feePayer: string } }
        | undefined;
      return entry?.extra.feePayer;
    },
  };
}

const asked = (scripted: Scripted): number => scripted.requests.filter(({ url }) => url === '/supported').length;
const lookedUp = (account: string): number =>
  chain.calls.filter(({ method, params }) => method === 'getAccountInfo' && params[0] === account).length;
const said = (lines: readonly string[], text: string): number => lines.filter((line) => line.includes(text)).length;

describe('the account that receives', () => {
  test('behaviour: a missing receiving account offers nothing; it is looked up every minute, and said once how to make it', async () => {
    const services = servicesAt([await startNaming(FEE_PAYER)]);
    const { feePayer, rail, lines, pass, stop } = await watch(() => services);
    expect(feePayer()).toBeUndefined();
    expect(lookedUp(ACCOUNT)).toBe(1);
    const line = lines.find((each) => each.includes('not offered')) ?? '';
    expect(JSON.parse(line)).toMatchObject({ level: 'error', account: ACCOUNT, network: SVM_NETWORK });
    expect(line).toContain('send any amount of the token to pay_to_address once');

    await pass(59);
    chain.mint(SHOP ?? '', 0n);
    expect([feePayer(), lookedUp(ACCOUNT)]).toEqual([undefined, 1]);
    const before = rail.revision();
    await pass(1);
    expect([feePayer(), lookedUp(ACCOUNT)]).toEqual([FEE_PAYER, 2]);
    expect(rail.revision()).toBeGreaterThan(before);
    expect([said(lines, 'not offered'), lines.at(-1)]).toEqual([1, expect.stringContaining('a way to pay is offered')]);

    // It is not looked up again.
    await pass(180);
    expect(lookedUp(ACCOUNT)).toBe(2);
    stop();
  });

  test('refuses: an account whose mint is of another program than SPL Token, and says so', async () => {
    const services = servicesAt([await startNaming(FEE_PAYER)]);
    chain.createMint(MINT ?? '', PROGRAMS.token2022);
    chain.mint(SHOP ?? '', 0n, MINT);
    const way = { ...WAY, asset: MINT ?? '' };
    const { feePayer, lines, stop } = await watch(() => services, [way]);
    expect(feePayer(way)).toBeUndefined();
    expect(said(lines, 'its mint is not of the SPL Token program')).toBe(1);
    stop();
  });

  test('behaviour: a way is offered if no node says anything of its account; the next node is asked before that', async () => {
    const [nowhere, facilitator] = [await deadUrl(), await startNaming(FEE_PAYER)];
    const away = servicesAt([facilitator], [nowhere]);
    const alone = await watch(() => away);
    expect(alone.feePayer()).toBe(FEE_PAYER);
    alone.stop();
    const two = servicesAt([facilitator], [nowhere, chain.rpcUrl]);
    const both = await watch(() => two);
    expect(both.feePayer()).toBeUndefined();
    both.stop();
  });
});

describe('the fee payer', () => {
  beforeEach(() => chain.mint(SHOP ?? '', 0n));

  test('behaviour: the fee payer is asked for again after 1, 2, 4 ... 60 seconds, and every ten minutes once it is known', async () => {
    const facilitator = await startNaming(undefined);
    const services = servicesAt([facilitator]);
    const { feePayer, pass, lines, stop } = await watch(() => services);
    const counts: number[] = [];
    for (const seconds of [1, 1, 1, 4, 8, 16, 32, 59, 1]) {
      await pass(seconds);
      counts.push(asked(facilitator));
    }
    expect(counts).toEqual([2, 2, 3, 4, 5, 6, 7, 7, 8]);
    expect([feePayer(), said(lines, 'no facilitator names a fee payer')]).toEqual([undefined, 1]);

    facilitator.feePayer = FEE_PAYER;
    await pass(60);
    expect([feePayer(), asked(facilitator)]).toEqual([FEE_PAYER, 9]);
    await pass(599);
    expect(asked(facilitator)).toBe(9);
    facilitator.feePayer = OTHER_FEE_PAYER;
    await pass(1);
    expect([feePayer(), asked(facilitator)]).toEqual([OTHER_FEE_PAYER, 10]);

    // The last one stays, however long its facilitator is away.
    facilitator.feePayer = undefined;
    await pass(1800);
    expect(feePayer()).toBe(OTHER_FEE_PAYER);
    stop();
  });

  test('behaviour: two receivers of one wallet have the fee payer of their own facilitator each', async () => {
    const [one, other] = [await startNaming(FEE_PAYER), await startNaming(OTHER_FEE_PAYER)];
    const [first, second] = [servicesAt([one]), servicesAt([other])];
    const theirs = { ...WAY, receiverId: 'theirs' };
    const { feePayer, stop } = await watch(
      ({ receiverId }) => (receiverId === 'theirs' ? second : first),
      [WAY, theirs],
    );
    expect([feePayer(WAY), feePayer(theirs)]).toEqual([FEE_PAYER, OTHER_FEE_PAYER]);
    stop();
  });

  test('behaviour: other facilitators in the configuration are asked for the fee payer at once; the known one stays until they answer', async () => {
    const [one, other] = [await startNaming(FEE_PAYER), await startNaming(undefined)];
    let services = servicesAt([one]);
    const { feePayer, pass, stop } = await watch(() => services);
    services = servicesAt([other]);
    await pass(1);
    expect([feePayer(), asked(one), asked(other)]).toEqual([FEE_PAYER, 1, 1]);
    other.feePayer = OTHER_FEE_PAYER;
    await pass(1);
    expect(feePayer()).toBe(OTHER_FEE_PAYER);
    stop();
  });
});

describe('check --online', () => {
  const find = async (way: Way = WAY, rpcUrls: readonly string[] = [chain.rpcUrl]): Promise<string[]> => {
    const services = servicesAt([await startNaming(FEE_PAYER)], rpcUrls);
    const ways = [{ way, networkName: 'solana-devnet', testnet: true, ...services }];
    const receiver = { id: 'default', currencies: ['USDC'], settle: 'auto', ways } as const;
    const authorize = createAuthorize(systemClock, createRandom());
    const findings = await checkReceivers([receiver], { fetch, clock: systemClock, authorize, v1: true });
    return findings.map(({ level, detail }) => `${level}: ${detail}`);
  };

  test('behaviour: check --online finds a mint and an account that are there', async () => {
    chain.mint(SHOP ?? '', 0n);
    expect(await find()).toEqual([
      expect.stringMatching(/^ok: the facilitator .* serves exact on solana:/),
      `ok: the mint and the token account on ${SVM_NETWORK} are there`,
    ]);
  });

  test('behaviour: check --online names an account that is missing, with how to make it', async () => {
    const how = 'send any amount of the token to pay_to_address once, which makes it';
    expect((await find())[1]).toBe(
      `cannot_serve: the token account ${ACCOUNT} of pay_to_address does not exist; ${how}`,
    );
  });

  test.each([
    ['a mint of Token-2022', PROGRAMS.token2022],
    ['no mint', undefined],
  ])('behaviour: check --online says that %s cannot be served', async (_, program) => {
    if (program !== undefined) chain.createMint(MINT ?? '', program);
    chain.mint(SHOP ?? '', 0n, MINT);
    const [, found] = await find({ ...WAY, asset: MINT ?? '' });
    expect(found).toMatch(/^cannot_serve: \w+ is no mint of the SPL Token program on solana:/);
  });

  test('behaviour: check --online names a node of another network, and one that is away', async () => {
    chain.answer('getGenesisHash', { result: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d' });
    expect((await find())[1]).toMatch(/^cannot_serve: the node .* is of solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp/);
    expect((await find(WAY, [await deadUrl()]))[1]).toMatch(/^away: the node/);
  });
});
