// Meanings for people of facilitators' words about a payment on an EVM chain. Source: the `exact` scheme of x402.

export type RefusalCause = 'too_little' | 'expired' | 'too_early' | 'signature' | 'undeployed' | 'other';

const MEANINGS: readonly (readonly [word: RegExp, because: RefusalCause])[] = [
  [/insufficient/, 'too_little'],
  [/valid_before|expired/, 'expired'],
  [/valid_after/, 'too_early'],
  [/eip6492|undeployed|smart_wallet|eip3009_not_supported/, 'undeployed'],
  [/signature/, 'signature'],
];

export function meaningOf(word: string): RefusalCause {
  return MEANINGS.find(([pattern]) => pattern.test(word))?.[1] ?? 'other';
}
