// Says of a node that a look cannot rely on it: it is away, of another chain, behind, or talks nonsense. That is never
// taken for "not there".
import type { NodeAnswer } from './nodes.ts';

export type NodeOutage = { readonly away: string };

/** Seconds that a look waits longer for a node that answers anybody than for the operator's own: its word is worth less. */
export const AFTER_END_PUBLIC_SECONDS = 600;

export function away(why: string): NodeOutage {
  return { away: why };
}

/** Says why a call of `method` gave no result. */
export function failed(answer: Exclude<NodeAnswer<unknown>, { kind: 'result' }>, method: string): NodeOutage {
  switch (answer.kind) {
    case 'error':
      return away(`${method}: error ${answer.code}`);
    case 'unavailable':
      return away(answer.detail);
    case 'spent':
      return away('enough was asked for one look');
    default:
      return answer satisfies never;
  }
}
