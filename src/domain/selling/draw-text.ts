// Changes of a pass's books, and their results, as JSON: amounts as decimal digits. No schema stands here: each thread of the
// ledger loads it.
import type { DrawChange, DrawResult } from './pass-book.ts';

type ChangeOf<K extends DrawChange['kind']> = Extract<DrawChange, { kind: K }>;
type ResultWithLeft = Extract<DrawResult, { readonly left: bigint }>;

export type DrawChangeText =
  | (Omit<ChangeOf<'reserve'>, 'amount'> & { readonly amount: string })
  | (Omit<ChangeOf<'take'>, 'amount'> & { readonly amount: string | null })
  | ChangeOf<'give_back'>;
export type DrawResultText =
  | (Omit<ResultWithLeft, 'left' | 'worth'> & { readonly left: string; readonly worth: string })
  | Exclude<DrawResult, ResultWithLeft>;

export function changeToText(change: DrawChange): DrawChangeText {
  switch (change.kind) {
    case 'reserve':
      return { ...change, amount: change.amount.toString() };
    case 'take':
      return { ...change, amount: change.amount === null ? null : change.amount.toString() };
    case 'give_back':
      return change;
    default:
      return change satisfies never;
  }
}

export function changeFromText(change: DrawChangeText): DrawChange {
  switch (change.kind) {
    case 'reserve':
      return { ...change, amount: BigInt(change.amount) };
    case 'take':
      return { ...change, amount: change.amount === null ? null : BigInt(change.amount) };
    case 'give_back':
      return change;
    default:
      return change satisfies never;
  }
}

export function resultToText(result: DrawResult): DrawResultText {
  return 'left' in result ? { ...result, left: result.left.toString(), worth: result.worth.toString() } : result;
}

export function resultFromText(result: DrawResultText): DrawResult {
  return 'left' in result ? { ...result, left: BigInt(result.left), worth: BigInt(result.worth) } : result;
}
