// Routes made for tests: a Route from the few fields that matter to a case.
import type { Route } from '../../src/domain/routing/route.ts';
import type { NewRoute } from '../../src/registry/store/ports.ts';

let made = 0;

/** `'GET /reports/* 0.10'`, the amount left out 0.10, with other fields as given. Ids are distinct and repeatable. */
export function route(rule: string, rest: Partial<Route> = {}): Route {
  const [method = '*', pattern = '/', amount = '0.10'] = rule.split(' ');
  made++;
  return {
    id: `00000000-0000-4000-8000-${made.toString(16).padStart(12, '0')}`,
    pattern,
    method,
    amount,
    currency: 'USD',
    name: null,
    description: null,
    status: 'active',
    allowAnonymous: true,
    source: null,
    receiverConfigId: null,
    planId: null,
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-01T00:00:00.000Z',
    ...rest,
  };
}

/** The same as the registry's store holds it. */
export function storedRoute(...args: Parameters<typeof route>): NewRoute {
  return { ...route(...args), writtenBy: 'config', declared: null };
}
