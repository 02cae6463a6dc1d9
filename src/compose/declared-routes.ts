// The routes of the configuration, made to be what the registry holds, and every change of them said.
import type { Config } from '../config/config.ts';
import { findUnpayable } from '../domain/payment/offer.ts';
import type { Check } from '../host/admin.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import {
  describeDifference,
  sweep,
  type DeclaredRoute,
  type DeclaredPlan,
  type Difference,
} from '../registry/routes/three-way-merge.ts';
import type { Registry } from '../registry/registry.ts';
import { receiversById } from './part.ts';

export const NO_ROUTES =
  'there are no routes, so every request passes free; write some into `routes`, or make them in the registry';

/** Rejects if the store fails; at a reload also with a sentence, and then nothing changed. */
export async function followConfiguration(
  config: Config,
  registry: Registry,
  at: 'start' | 'reload',
  log: Log,
): Promise<void> {
  const plan = await registry.declare(config.routes.map(declaredOf), at);
  say(plan, log);
  const receivers = receiversById(config);
  for (const { next } of plan.changes) {
    const [reason] = findUnpayable(next, receivers);
    if (reason !== undefined) {
      log.error('a declared route cannot be paid as it stands now', { ...named(next), reason: reason.detail });
    }
  }
  if (at === 'start' && config.front !== undefined && registry.routeSet().routes.length === 0) log.warn(NO_ROUTES);
  for (const difference of plan.differences) {
    log.warn('a declared route differs from the stored one', { difference: describeDifference(difference) });
  }
}

/** A route as the registry takes it: no source, and text that every store can hold. */
export function declaredOf({ source: _source, ...route }: Config['routes'][number]): DeclaredRoute {
  const { name, description } = route;
  return { ...route, name: name?.toWellFormed() ?? null, description: description?.toWellFormed() ?? null };
}

/** Ready all the same: a dashboard may change what a file declares. */
export function differencesCheck(differences: () => readonly Difference[]): Check {
  return {
    name: 'declared_routes',
    run: () => {
      const found = differences();
      if (found.length === 0) return { ok: true, detail: 'the store is as the configuration says' };
      const shown = found.slice(0, MOST_SHOWN).map(describeDifference);
      const more = found.length - shown.length;
      return { ok: true, detail: `${shown.join('. ')}${more > 0 ? `. And ${more} more` : ''}` };
    },
  };
}

export function observeDifferences(metrics: Metrics, differences: () => readonly Difference[]): void {
  const help = 'Routes of the configuration that are not in the store as it says.';
  metrics.observed('gauge', 'declared_routes_differing', help, [], (set) => set({}, differences().length));
}

const MOST_SHOWN = 20;

const OVERRULED =
  'declared route applied, in place of what another file on this store, or an earlier one, had declared';

function say(plan: DeclaredPlan, log: Log): void {
  const swept = sweep(plan);
  if (swept !== undefined) log.warn(`this start ${swept}, because the configuration names them no more`);
  for (const route of plan.deletes) {
    const { amount, currency, status, source } = route;
    log.warn('declared route deleted', { ...named(route), before: { amount, currency, status, source } });
  }
  for (const route of plan.left)
    log.warn('a declared route is not in this file and stays in force: another file on this store may declare it', {
      ...named(route),
      instead: `tollgate routes delete ${route.id}, or delete it on the dashboard`,
    });
  for (const { route, fields, overrules } of plan.changes) {
    const applied = overrules ? OVERRULED : 'declared route applied';
    log[overrules ? 'warn' : 'info'](applied, {
      ...named(route),
      before: Object.fromEntries(fields.map(({ field, from }) => [field, from])),
      after: Object.fromEntries(fields.map(({ field, to }) => [field, to])),
    });
  }
  for (const { method, route_pattern: pattern, amount, currency, status } of plan.creates) {
    log.info('declared route created', { method, route_pattern: pattern, after: { amount, currency, status } });
  }
}

function named({ id, method, pattern }: { id: string; method: string; pattern: string }): Record<string, string> {
  return { route_id: id, method, route_pattern: pattern };
}
