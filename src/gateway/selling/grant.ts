// Lets a request pass by its plan: the permit, and what hears of its response and end. Only the ways to pass come here.
import { accessHeaders, mintPermit, type PlannedSale } from '../../domain/decide.ts';
import type { GrantedOutcome, ResponseVerdict } from '../outcome.ts';
import type { Ruling } from './way-to-pass.ts';

type GrantOptions = Partial<
  Pick<GrantedOutcome, 'beforeResponse' | 'done' | 'customerId' | 'grant' | 'chargeId' | 'hearer'>
> & {
  /** Further headers for the upstream: flat name, value pairs. */
  readonly headers?: readonly string[];
};

const AS_IT_IS: ResponseVerdict = { kind: 'stream', headers: [] };

/** Grants a request. */
export function grantAccess(
  access: GrantedOutcome['access'],
  { route }: Pick<PlannedSale, 'route'>,
  options: GrantOptions = {},
): Ruling {
  const { headers = [], beforeResponse, done, customerId, grant, chargeId, hearer } = options;
  return {
    kind: 'granted',
    permit: mintPermit(access, route, [...accessHeaders(access), ...headers]),
    granted: {
      ...{ kind: 'granted', access, route, customerId, grant, chargeId, settles: 'nothing', keep: undefined, hearer },
      beforeResponse: beforeResponse ?? ((): ResponseVerdict => AS_IT_IS),
      done: done ?? ((): void => undefined),
    },
  };
}
