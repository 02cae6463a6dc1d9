// Whether a way on Solana can be paid: a facilitator named a fee payer, and the account that receives exists. The last fee
// payer stays, however long its facilitator is away: any that a payment names is taken. Both are asked at the start and
// then now and again, never for a request.
import { z } from 'zod';
import type { Way } from '../../../domain/payment/way.ts';
import type { RailDeps } from '../family.ts';
import { createRpc } from '../json-rpc.ts';
import { askSupported } from '../x402/supported.ts';
import { findTokenAccount, isSvmAddress, TOKEN_PROGRAM } from './addresses.ts';

export type WayReadiness = {
  /** Undefined: the way cannot be offered. */
  readonly feePayer: (way: Way) => string | undefined;
  /** Raised whenever what can be offered has changed. */
  readonly revision: () => number;
  /** Begins to ask about `ways`, which may change; what is returned ends it. */
  readonly watch: (ways: () => readonly Way[]) => () => void;
};

const SUPPORTED_EVERY_MS = 600_000;
const ACCOUNT_EVERY_MS = 60_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;

type State = {
  feePayer: string | undefined;
  /** `unknown`: nobody said so yet, and then the way is offered. */
  account: 'unknown' | 'there' | 'missing' | 'other_program';
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
  const stateOf = ({ network, asset, payTo }: Way): State => {
    const name = `${network} ${asset} ${payTo}`;
    let state = states.get(name);
    if (state === undefined) {
      state = { feePayer: undefined, account: 'unknown', supportedAt: -Infinity, accountAt: -Infinity, failures: 0 };
      states.set(name, state);
    }
    return state;
  };

  const askForFeePayer = async (way: Way, state: State): Promise<void> => {
    for (const { extra } of await askSupported(way, deps)) {
      const { success, data } = supportedExtra.safeParse(extra);
      if (!success) continue;
      if (state.feePayer !== data.feePayer) revision++;
      if (state.feePayer === undefined)
        log.info('a way to pay is offered', { network: way.network, fee_payer: data.feePayer });
      Object.assign(state, { feePayer: data.feePayer, failures: 0, supportedAt: clock.monotonic() });
      return;
    }
    state.failures++;
    const waitMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(state.failures - 1, 10));
    state.supportedAt = clock.monotonic() - SUPPORTED_EVERY_MS + waitMs;
    if (state.failures === 1) log.warn('no facilitator names a fee payer for a way to pay', { network: way.network });
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
        revision++;
        const fields = { network: way.network, asset: way.asset, account };
        if (found === 'missing')
          log.error(
            'a way to pay is not offered: its token account does not exist; send any amount of the token to pay_to_address once',
            fields,
          );
        if (found === 'other_program')
          log.error('a way to pay is not offered: its mint is not of the SPL Token program', fields);
      }
      state.account = found;
      return;
    }
  };

  const turn = async (ways: readonly Way[]): Promise<void> => {
    for (const way of ways) {
      const state = stateOf(way);
      const now = clock.monotonic();
      if (now - state.supportedAt >= SUPPORTED_EVERY_MS) await askForFeePayer(way, state);
      if (state.account !== 'there' && now - state.accountAt >= ACCOUNT_EVERY_MS) await askForAccount(way, state);
    }
  };

  return {
    feePayer: (way) => {
      const { feePayer, account } = stateOf(way);
      return account === 'missing' || account === 'other_program' ? undefined : feePayer;
    },
    revision: () => revision,
    watch: (ways) => {
      let stopped = false;
      let cancel = (): void => undefined;
      const again = (): void => {
        void turn(ways())
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
