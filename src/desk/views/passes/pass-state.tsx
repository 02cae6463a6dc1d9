// The state of a pass as a dot and a word.
import { State } from '../../parts/text.tsx';
import type { PassRecord } from '../../wire/sold-passes.ts';
import { PASS_STATES } from './pass-words.ts';

export function PassState({ status }: Pick<PassRecord, 'status'>) {
  const { tone, text } = PASS_STATES[status];
  return <State tone={tone}>{text}</State>;
}
