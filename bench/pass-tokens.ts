// Tokens of passes by seconds as a buyer holds them, made from a number alone: signed with the secret that the scenario `pass`
// configures, each of a sale of its own. Nothing was paid for them: a pass by seconds is its token, and no store knows of it.
import { createPassTokens } from '../src/domain/selling/pass-token.ts';

export const PASS_SECRET = 'bench-secret-of-the-passes-of-32-bytes';
export const PASS_PLAN = 'pass';
/** Price of the pass, as a plan and as a charge id say it. */
export const PASS_AMOUNT = '0.75';
const [UNITS, SCALE] = [75, 2];
const LIFE_MS = 86_400_000;

const tokens = createPassTokens([PASS_SECRET]);
const endsAtMs = Date.now() + LIFE_MS;

/** Token of sale number `n`. */
export function tokenOf(n: number): string {
  const charge = Buffer.alloc(84);
  charge[0] = 1;
  charge[32] = UNITS;
  charge[33] = SCALE;
  charge.write('USD', 34, 'latin1');
  charge.writeUInt32BE(n, 72);
  const chargeId = `chg_${charge.toString('base64url')}`;
  const sale = { chargeId, passId: '', routeId: '', payer: '', network: '', soldAtMs: 0, amount: PASS_AMOUNT };
  const terms = { kind: 'seconds', seconds: LIFE_MS / 1000, scope: 'plan', validMs: LIFE_MS, first: '0' } as const;
  return tokens.write({ ...sale, ...terms, endsAtMs, planId: PASS_PLAN, termsId: 'day', currency: 'USD' });
}
