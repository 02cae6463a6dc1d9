// Tries a made-up credential on the routes whose plan leaves it to the API who its customers are (`ask`). Whatever the API gives
// to anybody who shows one, such a plan gives away. Only GET is sent: nothing may change.
import type { SellingConfig } from '../../config/selling.ts';
import type { CustomerEntry } from '../../domain/selling/customer.ts';
import { findPlan } from '../../domain/selling/plan.ts';
import { parsePattern } from '../../domain/routing/pattern.ts';
import type { Route } from '../../domain/routing/route.ts';
import type { ProbeResponse } from './ask.ts';

type CredentialTrial = {
  readonly route: Route;
  readonly plan: string;
  readonly customers: string;
  /** Lower-cased name of the header that carries the credential. */
  readonly header: string;
  /** Statuses with which the API refuses a credential. */
  readonly statuses: readonly number[];
  /** Path that is asked, with its query. */
  readonly target: string;
};

export type TriedCredential = CredentialTrial & {
  readonly found: 'refused' | 'open' | 'unclear' | 'away';
  /** Status, or the reason why there was no answer. */
  readonly answer: number | string;
};

type TrialDeps = {
  readonly ask: (target: string, headers: Readonly<Record<string, string>>) => Promise<ProbeResponse>;
  readonly unlikely: () => string;
  /** Questions at once. */
  readonly parallel: number;
};

/** Stands for each parameter of a pattern: the id of something that may be there. */
const PARAMETER = '1';

/**
 * Finds what to try: every active route that answers GET, and each of its plan's entries with `ask`. `known` finds paths of a
 * route that the API answers; without one a path is made out of the pattern.
 */
export function credentialTrials(
  routes: readonly Route[],
  { plans, customers }: Pick<SellingConfig, 'plans' | 'customers'>,
  known: (route: Route) => readonly string[],
): readonly CredentialTrial[] {
  return routes.flatMap((route) => {
    const plan = findPlan(route, plans);
    const isAsked = (route.method === 'GET' || route.method === '*') && route.status === 'active';
    if (!isAsked || plan === undefined || 'code' in plan) return [];
    const named = known(route);
    const targets = named.length > 0 ? named : [pathOf(route)];
    const entries = plan.customers.flatMap((id) => customers.get(id) ?? []);
    return entries.flatMap((entry) => targets.flatMap((target) => trialOf(route, plan.id, entry, target)));
  });
}

function trialOf(route: Route, plan: string, { id, header, proof }: CustomerEntry, target: string): CredentialTrial[] {
  if (proof.kind !== 'ask') return [];
  return [{ route, plan, customers: id, header, statuses: proof.statuses, target }];
}

function pathOf({ pattern }: Route): string {
  const parsed = parsePattern(pattern);
  if (!parsed.ok) return pattern;
  const parts = parsed.pattern.segments.map((segment) =>
    segment.kind === 'literal' ? encodeURIComponent(segment.text) : PARAMETER,
  );
  return `/${parts.join('/')}`;
}

export async function tryCredentials(
  trials: readonly CredentialTrial[],
  { ask, unlikely, parallel }: TrialDeps,
): Promise<readonly TriedCredential[]> {
  const tried: TriedCredential[] = [];
  for (let at = 0; at < trials.length; at += parallel) {
    const some = trials.slice(at, at + parallel);
    tried.push(
      ...(await Promise.all(
        some.map(async (trial) => {
          const value = trial.header === 'authorization' ? `Bearer ${unlikely()}` : unlikely();
          return judge(trial, await ask(trial.target, { [trial.header]: value }));
        }),
      )),
    );
  }
  return tried;
}

function judge(trial: CredentialTrial, response: ProbeResponse): TriedCredential {
  if (response.kind === 'none') return { ...trial, found: 'away', answer: response.detail };
  const { status } = response;
  if (trial.statuses.includes(status)) return { ...trial, found: 'refused', answer: status };
  return { ...trial, found: status >= 200 && status < 300 ? 'open' : 'unclear', answer: status };
}

export function describeTried({
  route,
  plan,
  customers,
  header,
  statuses,
  target,
  found,
  answer,
}: TriedCredential): string {
  const asked = `${route.method} ${route.pattern} (plan ${plan}): GET ${target} with a made-up ${header}`;
  switch (found) {
    case 'refused':
      return `${asked} is refused (${answer}), as it should be`;
    case 'open':
      return `${asked} is answered ${answer}: the customers "${customers}" (ask) open it to everybody; let the API answer ${statuses.join(' or ')} to a credential that it does not know, or take them out of the plan`;
    case 'unclear':
      return `${asked} is answered ${answer}, which tells nothing; name a path that the API answers: tollgate probe --config FILE --path PATH`;
    case 'away':
      return `${asked} got no answer: ${answer}`;
    default:
      return found satisfies never;
  }
}
