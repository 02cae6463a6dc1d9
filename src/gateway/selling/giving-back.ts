// Gives a counted request back if its response is not one that is charged for, or if there is none: as soon as the status line
// says so, else at the end. One that would be settled first stays counted though its client left: its effect was had.
import type { GrantedOutcome, GrantedVerdict } from '../outcome.ts';
import type { SeenResponse } from './would-charge.ts';

/** What a grant hears. `headersOf`: headers for the client, by whether the request stays counted. */
export function givingBack(
  isCharged: (seen: SeenResponse) => boolean,
  giveBack: () => void,
  headersOf: (counted: boolean) => readonly string[] = () => [],
): Pick<GrantedOutcome, 'beforeResponse' | 'done'> {
  let open = true;
  return {
    beforeResponse: (head): GrantedVerdict => {
      open = false;
      const counted = isCharged(head);
      if (!counted) giveBack();
      return { kind: 'stream', headers: headersOf(counted) };
    },
    done: (end) => {
      const hasLeft = end.kind === 'client_gone' && end.asked;
      if (open && !(hasLeft && isCharged('left'))) giveBack();
      open = false;
    },
  };
}
