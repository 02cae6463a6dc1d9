// Gives a counted request back if its response is not one that is charged for, or if there is none: as soon as the status line
// says so, else at the end.
import type { GrantedOutcome, GrantedVerdict, SeenResponseHead } from '../outcome.ts';

/** What a grant hears. `headersOf`: headers for the client, by whether the request stays counted. */
export function givingBack(
  isCharged: (head: SeenResponseHead) => boolean,
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
    done: () => {
      if (open) giveBack();
      open = false;
    },
  };
}
