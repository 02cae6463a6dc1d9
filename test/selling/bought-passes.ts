// Passes as the tests buy and present them: what a 402 offers, a purchase of one of it, and what answers say of it.
import { makeUpPayment } from '../support/made-up-payment.ts';
import type { Answer, Ask, PlanKit } from './kit.ts';

/** An entry of `accepts`; `pass`: what it sells, unless that is a single request. */
export type Entry = Parameters<typeof makeUpPayment>[0] & {
  readonly extra: { readonly pass?: { readonly id: string } };
};

/** What was presented, and what came back. */
export type Bought = { readonly credential: string; readonly answer: Answer };

export async function offersOf(kit: PlanKit, target: string, ask: Ask = {}): Promise<readonly Entry[]> {
  const { headers } = await kit.ask(target, ask);
  const text = Buffer.from(String(headers['payment-required']), 'base64').toString();
  return (JSON.parse(text) as { accepts: readonly Entry[] }).accepts;
}

/** The offer of a pass; undefined: that of a single request. */
export async function offerOf(kit: PlanKit, target: string, pass: string | undefined, ask: Ask = {}): Promise<Entry> {
  const entry = (await offersOf(kit, target, ask)).find(({ extra }) => extra.pass?.id === pass);
  if (entry === undefined) throw new Error(`${pass} is not offered`);
  return entry;
}

export async function buyPass(kit: PlanKit, target: string, pass: string, ask: Ask = {}): Promise<Bought> {
  const credential = makeUpPayment(await offerOf(kit, target, pass, ask), kit.now());
  const answer = await kit.ask(target, { ...ask, headers: { ...ask.headers, 'payment-signature': credential } });
  return { credential, answer };
}

export const present = (kit: PlanKit, target: string, token: string, more: Ask = {}): Promise<Answer> =>
  kit.ask(target, { ...more, headers: { ...more.headers, 'tollgate-pass': token } });

export const tokenOf = ({ headers }: Answer): string => String(headers['tollgate-pass']);
export const leftOf = ({ headers }: Answer): unknown => headers['tollgate-pass-left'];
