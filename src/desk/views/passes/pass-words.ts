// Words about passes: what is left of one, what its state means, and which pass somebody asks for by what was pasted.
import { groupAmount } from '../../format/money.ts';
import { countText } from '../../format/numbers.ts';
import type { PassRecord } from '../../wire/sold-passes.ts';

export const PASS_STATES = {
  live: { tone: 'good', text: 'live' },
  used_up: { tone: 'calm', text: 'used up' },
  ended: { tone: 'calm', text: 'ended' },
  revoked: { tone: 'warn', text: 'revoked' },
} as const satisfies Readonly<Record<PassRecord['status'], { readonly tone: string; readonly text: string }>>;

type Held = Pick<PassRecord, 'kind' | 'currency' | 'sold' | 'left'>;

/** A part of what a pass holds, such as its `left`. */
export function partText({ kind, currency }: Pick<Held, 'kind' | 'currency'>, part: string | null): string {
  if (part === null) return '–';
  return kind === 'uses' ? countText(Number(part)) : `${groupAmount(part)} ${currency}`;
}

/** What is left of a pass, of what was sold; null if it holds seconds, which its end says. */
export function leftText({ kind, currency, sold, left }: Held): string | null {
  if (sold === null || left === null) return null;
  if (kind === 'uses') return `${countText(Number(left))} of ${countText(Number(sold))}`;
  return `${groupAmount(left)} of ${groupAmount(sold)} ${currency}`;
}

/** What the state means for whoever holds the pass. */
export function meaningOf({ status, kind }: Pick<PassRecord, 'status' | 'kind'>): string {
  switch (status) {
    case 'live':
      return kind === 'seconds'
        ? 'It lets any number of requests pass until its end. They are not counted.'
        : 'It lets requests pass until its end, or until nothing is left of it.';
    case 'used_up':
      return 'All of it was used. Its holder pays again.';
    case 'ended':
      return 'Its time is over. What was left has lapsed, and its holder pays again.';
    case 'revoked':
      return 'It lets nobody pass any more. Its charge says what was given back.';
    default:
      return status satisfies never;
  }
}

/** Where a search leads: to one pass, by its id or that of its charge, or to those of a payer. */
export function readPassSearch(text: string): { readonly id: string } | { readonly payer: string } {
  if (text.startsWith('pass_')) return { id: text };
  return text.startsWith('chg_') ? { id: text.replace('chg_', 'pass_') } : { payer: text };
}
