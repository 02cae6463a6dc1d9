// Whether a way on Solana can be paid: a facilitator named a fee payer, and the receiving account exists. While a
// facilitator is away its last fee payer is offered on: a payment may name any fee payer. Both are asked at the start
// and then now and again, never for a request.
import { z } from 'zod';
import type { Way } from '../../../domain/payment/way.ts';
import type { WayServices } from '../../../domain/payment/offer.ts';
import type { RailDeps } from '../chain-family.ts';
import { createRpc } from '../json-rpc.ts';
import { askSupported } from '../x402/supported-kinds.ts';
import { findTokenAccount, isSvmAddress, TOKEN_PROGRAM } from './addresses.ts';

type WayReadiness = {
  /** Fee payer of a way; undefined: the way cannot be offered. */
  readonly feePayer: (way: Way) => string | undefined;
  /** Counter that is raised whenever what can be offered has changed. */
  readonly revision: () => number;
  /** Begins to ask about `ways`, which may change; what is returned ends it. */
  readonly watch: (ways: () => readonly Way[]) => () => void;
};

const SUPPORTED_EVERY_MS = 600_000;
const ACCOUNT_EVERY_MS = 60_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;

type State = {
  /** Services that were asked: a change of configuration asks all again, and what was known stays until then. */
  services: WayServices | undefined;
  feePayer: string | undefined;
  /** State of the account. `unknown`: no node said so yet, and then the way is offered. */
  account: 'unknown' | 'there' | 'missing' | 'other_program';
  isOffered: boolean;
  supportedAt: number;
  accountAt: number;
  failures: number;
};

const accountSchema = z.object({ value: z.object({ owner: z.string() }).nullable() });
const supportedExtra = z.object({ feePayer: z.string().refine(isSvmAddress) });

export function createReadiness(deps: RailDeps): WayReadiness {
  const { schedule, clock, log, fetch, services } = deps;
  const states = new Map<string, State>();
  let revision = 0;
  const stateOf = ({ receiverId, network, asset, payTo }: Way): State => {
    const name = `${network} ${asset} ${payTo} ${receiverId}`;
    let state = states.get(name);
    if (state === undefined) {
      const never = { supportedAt: -Infinity, accountAt: -Infinity, failures: 0 };
      state = { services: undefined, feePayer: undefined, account: 'unknown', isOffered: false, ...never };
      states.set(name, state);
    }
    return state;
  };

  const change = (way: Way, state: State, to: Partial<State>): void => {
    Object.assign(state, to);
    revision++;
    const { network, receiverId: receiver, asset } = way;
    const isOffered = feePayerOf(state) !== undefined;
    if (isOffered && !state.isOffered)
      log.info('a way to pay is offered', { network, receiver, asset, fee_payer: state.feePayer });
    state.isOffered = isOffered;
  };

  const askForFeePayer = async (way: Way, state: State): Promise<void> => {
    for (const { extra } of await askSupported(way, deps)) {
      const { success, data } = supportedExtra.safeParse(extra);
      if (!success) continue;
      Object.assign(state, { failures: 0, supportedAt: clock.monotonic() });
      if (state.feePayer !== data.feePayer) change(way, state, { feePayer: data.feePayer });
      return;
    }
    state.failures++;
    const waitMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(state.failures - 1, 10));
    state.supportedAt = clock.monotonic() - SUPPORTED_EVERY_MS + waitMs;
    // The reason is known from the start's own questions; later it is news.
    const level = state.feePayer === undefined ? 'info' : 'warn';
    if (state.failures === 1) log[level]('no facilitator names a fee payer for a way to pay', { network: way.network });
  };

  const askForAccount = async (way: Way, state: State): Promise<void> => {
    state.accountAt = clock.monotonic();
    const account = findTokenAccount(way.payTo, way.asset);
    for (const url of services(way)?.rpcUrls ?? []) {
      const rpc = createRpc(url, fetch);
      const options = { encoding: 'base64', commitment: 'confirmed' };
      const [mint, receiving] = await Promise.all([
        rpc('getAccountInfo', [way.asset, options], accountSchema),
        rpc('getAccountInfo', [account, options], accountSchema),
      ]);
      if (mint.kind !== 'result' || receiving.kind !== 'result') continue;
      const owner = mint.value.value?.owner;
      const found = owner !== TOKEN_PROGRAM ? 'other_program' : receiving.value.value === null ? 'missing' : 'there';
      if (state.account !== found) {
        change(way, state, { account: found });
        const fields = { network: way.network, asset: way.asset, account };
        if (found === 'missing')
          log.error(
            'a way to pay is not offered: its token account does not exist; send any amount of the token to pay_to_address once',
            fields,
          );
        if (found === 'other_program')
          log.error('a way to pay is not offered: its mint is not of the SPL Token program', fields);
      }
      return;
    }
  };

  const look = async (way: Way): Promise<void> => {
    const state = stateOf(way);
    const inForce = services(way);
    if (state.services !== inForce)
      Object.assign(state, { services: inForce, supportedAt: -Infinity, accountAt: -Infinity });
    const now = clock.monotonic();
    await Promise.all([
      now - state.supportedAt >= SUPPORTED_EVERY_MS ? askForFeePayer(way, state) : undefined,
      state.account !== 'there' && now - state.accountAt >= ACCOUNT_EVERY_MS ? askForAccount(way, state) : undefined,
    ]);
  };

  return {
    feePayer: (way) => feePayerOf(stateOf(way)),
    revision: () => revision,
    watch: (ways) => {
      let stopped = false;
      let cancel = (): void => undefined;
      const again = (): void => {
        void Promise.all(ways().map(look))
          .catch((error: unknown) => log.error('the ways to pay on Solana could not be looked at', { error }))
          .finally(() => {
            if (!stopped) cancel = schedule(FIRST_RETRY_MS, again);
          });
      };
      again();
      return () => {
        stopped = true;
        cancel();
      };
    },
  };
}

function feePayerOf({ account, feePayer }: State): string | undefined {
  return account === 'missing' || account === 'other_program' ? undefined : feePayer;
}
