// A client that wants one service and has money: takes a quote, signs, sends, sends twice, leaves, comes back with the
// same credential, and signs again only where it is told 402. It must never have paid twice for the one service.
import type { PaymentKey } from '../../../src/domain/payment/charge.ts';
import { ASSET, NETWORK, type Signed } from './facilitator.ts';
import type { Process, World } from './process.ts';
import type { Reply } from './relay.ts';
import { PRICE } from './watch.ts';

export type Client = {
  /** Has what it wanted, or has given up for now. */
  readonly resting: () => boolean;
  /** Asks again for whatever it paid for and did not get. */
  readonly insist: () => void;
  readonly judge: () => void;
};

type Credential = { readonly key: PaymentKey; readonly value: string };

const ATTEMPTS = 6;
const LAST_ATTEMPTS = 8;

/** Where a request goes: a process, or a front that asks one. */
export type Door = Pick<Process, 'actor' | 'handle'>;

export type ClientWays = {
  readonly someDoor: () => Door | undefined;
  /** It comes through a front alone. */
  readonly isAsked: boolean;
};

export function runClient(world: World, n: number, { someDoor, isAsked }: ClientWays): Client {
  const { scheduler, weather, watch, chain } = world;
  const { draw } = scheduler;
  const actor = { name: `client ${n + 1}`, alive: true };
  const payer = `0x${(n + 1).toString(16).padStart(40, '0')}`;
  const method = draw.pick(['GET', 'POST']);
  const target = `/r?client=${n}`;
  const signed: Credential[] = [];
  // A request that it left may stand still on its way and pay long after another one of the same payment was refused
  // (a refused verification writes nothing): with such a one about, a refusal is no reason to sign again.
  const left = new Set<Credential>();
  const got = { served: false };
  let resting = false;

  const sign = (ref: string | undefined): Credential => {
    const nonce = `0x${(n * 1_000 + signed.length + 1).toString(16).padStart(64, '0')}`;
    const validBefore = Math.floor(scheduler.now() / 1000) + draw.pick([30, 300, 300]);
    const content: Signed = {
      payer,
      nonce,
      ref,
      amount: PRICE.toString(),
      payTo: '0x1111111111111111111111111111111111111111',
      validBefore,
    };
    const credential = {
      key: { network: NETWORK, asset: ASSET, payer, unique: nonce },
      value: JSON.stringify(content),
    };
    signed.push(credential);
    watch.signed(credential.key, validBefore);
    return credential;
  };

  const send = async (credential: Credential | undefined): Promise<Reply> => {
    await scheduler.point(
      actor,
      credential === undefined ? `asks ${method}` : `pays with ${credential.key.unique.slice(-4)}`,
      draw.below(draw.pick([50, 50, 3_000])),
    );
    const door = someDoor();
    if (door === undefined || !door.actor.alive) return { kind: 'broken' };
    const { connection, reply } = door.handle({
      method,
      target,
      credential: credential?.value,
      key: credential?.key,
    });
    if (weather.happens('client_leaves')) {
      await scheduler.point(actor, 'leaves', draw.below(draw.pick([50, 500, 5_000])));
      connection.gone = true;
      if (credential !== undefined) left.add(credential);
      connection.reply({ kind: 'broken' });
    }
    const said = await scheduler.crossing(actor, 'has an answer', reply);
    scheduler.say(`${actor.name}: ${said.kind === 'answer' ? `${said.status} ${said.reason ?? ''}` : said.kind}`);
    if (said.kind === 'answer' && said.served) got.served = true;
    return said;
  };

  const live = async (): Promise<void> => {
    let credential: Credential | undefined;
    for (let attempt = 0; attempt < ATTEMPTS && !got.served; attempt++) {
      await scheduler.point(actor, 'thinks', draw.below(draw.pick([100, 3_000, 70_000])));
      if (credential === undefined) {
        const quoted = draw.chance(0.7) ? await send(undefined) : undefined;
        credential = sign(quoted?.kind === 'answer' ? quoted.chargeId : undefined);
      }
      const paying = credential;
      const copies = draw.chance(0.3) ? 2 + draw.below(2) : 1;
      const replies = await Promise.all(Array.from({ length: copies }, () => send(paying)));
      if (!left.has(paying) && replies.every((reply) => reply.kind === 'answer' && reply.status === 402))
        credential = undefined;
    }
  };

  /** All is well now: a payment that was taken gives the service, or says that it was paid; never 402, never nothing. */
  const ask = async (credential: Credential): Promise<void> => {
    let last: Reply = { kind: 'broken' };
    for (let attempt = 0; attempt < LAST_ATTEMPTS && !got.served; attempt++) {
      last = await send(credential);
      if (isAsked && last.kind === 'answer' && last.reason === 'already_paid') return watch.denied(credential.key);
      if (last.kind === 'answer' && (last.status === 402 || last.reason === 'already_paid' || last.status === 409)) {
        if (last.status !== 409 || attempt > 4) return;
      }
      // An upstream that failed under this payment is left alone for up to half an hour.
      const seconds = last.kind === 'answer' ? (last.retrySeconds ?? 0) : 0;
      await scheduler.point(actor, 'waits', Math.max(40_000, seconds * 1000));
    }
    if (!got.served) watch.violated(`${actor.name} paid, was not served and is told ${JSON.stringify(last)}`);
  };

  const start = (work: Promise<void>): void => {
    resting = false;
    work.then(
      () => {
        resting = true;
      },
      (error: unknown) => watch.violated(`a client failed: ${String(error)}`),
    );
  };
  start(live());

  const paid = (): Credential[] => signed.filter(({ key }) => chain.used(key)?.paid === true);
  return {
    resting: () => resting,
    insist: () => {
      if (got.served) return;
      start(
        (async () => {
          for (const credential of paid()) await ask(credential);
        })(),
      );
    },
    judge: () => {
      const times = paid().length;
      if (times > 1) watch.violated(`${actor.name} wanted one service and paid ${times} times`);
    },
  };
}
