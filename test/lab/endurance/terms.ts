// What a 402 asks for, as its header says it.
import { ask } from '../../../bench/check.ts';
import type { Stage } from './stage.ts';

export async function fetchTerms({ tollgate }: Stage): Promise<string> {
  const { status, headers } = await ask(tollgate.port('proxy'), { method: 'GET', path: '/paid/terms' });
  const terms = headers['payment-required'];
  if (status !== 402 || typeof terms !== 'string') throw new Error(`an unpaid request was answered ${status}`);
  return terms;
}
