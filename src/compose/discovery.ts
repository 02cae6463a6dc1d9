// The discovery of a process: reads the API description that the configuration names, says what is wrong with it, and how
// many routes will be public. A description that cannot be used leaves the last one that could.
import { setImmediate as breathe } from 'node:timers/promises';
import type { Config, LoadedConfig } from '../config/config.ts';
import { readOpenApiFile } from '../config/openapi.ts';
import { createDiscovery, type Discovery } from '../domain/discovery/listing.ts';
import type { OpenApi } from '../domain/discovery/openapi.ts';
import type { Route } from '../domain/route.ts';
import type { Log } from '../host/log.ts';

type ReadDiscovery = {
  readonly discovery: Discovery;
  /** `file:line: what is wrong`. */
  readonly remarks: readonly string[];
  /** What can be used; undefined: there is none, or it could not be read. */
  readonly description: NamedDescription | undefined;
};
export type NamedDescription = OpenApi & { readonly name: string };

export type DiscoverySource = {
  /** For `config`; undefined: it wants none. */
  readonly read: (config: Pick<Config, 'discovery'>) => Promise<Discovery | undefined>;
  /** The description that was read last. */
  readonly description: () => NamedDescription | undefined;
  /** Says what is public of `routes`, by what was read last. */
  readonly tell: (routes: readonly Route[]) => Promise<void>;
};

/** Routes without an operation that are named one by one. */
const MOST_NAMED = 20;
/** Routes that are looked at before others run: about a millisecond. */
const SLICE = 64;

/** Undefined: `config` wants none. `last`: what could be read before. */
export async function readDiscovery(
  { discovery: section }: Pick<LoadedConfig, 'discovery'>,
  last?: NamedDescription,
): Promise<ReadDiscovery | undefined> {
  if (section === undefined) return undefined;
  const { openapi } = section;
  const read = openapi === undefined ? undefined : await readOpenApiFile(openapi.file);
  const remarks: string[] = [];
  let description: NamedDescription | undefined;
  if (openapi !== undefined && read !== undefined) {
    if ('operations' in read) description = { ...read, name: openapi.name };
    else description = last;
    const instead = last === undefined ? 'methods and templates alone are told' : 'what was read before is told';
    for (const { line, message } of 'operations' in read
      ? read.remarks
      : [{ ...read, message: `${read.message}; ${instead}` }])
      remarks.push(`${openapi.name}:${line}: ${message}`);
  }
  return { discovery: discoveryOf(section, description), remarks, description };
}

/** By a description that was read before. */
export function discoveryOf(
  { serviceName, tags, iconUrl, exclude }: NonNullable<Config['discovery']>,
  description: NamedDescription | undefined,
): Discovery {
  const service = { serviceName, tags, iconUrl };
  return createDiscovery({ service, exclude, operations: description?.operations ?? [] });
}

/** How many of `routes` will be public, and those of them that the description does not know. Many of them stall nothing. */
export async function lookAtRoutes(
  { discovery, description }: ReadDiscovery,
  routes: readonly Route[],
): Promise<{ readonly publicRoutes: number; readonly pricedRoutes: number; readonly remarks: readonly string[] }> {
  let [publicRoutes, pricedRoutes, unknown] = [0, 0, 0];
  const remarks: string[] = [];
  const at = description && `${description.name}:${description.pathsLine}`;
  for (const [index, route] of routes.entries()) {
    if (index % SLICE === SLICE - 1) await breathe();
    if (route.status !== 'active') continue;
    pricedRoutes++;
    const standing = discovery.standingOf(route);
    if (standing === 'hidden') continue;
    publicRoutes++;
    if (standing === 'known' || at === undefined || ++unknown > MOST_NAMED) continue;
    const { method, pattern } = route;
    remarks.push(`${at}: has no operation for ${method} ${pattern}; its method and template alone are told`);
  }
  if (unknown > MOST_NAMED) remarks.push(`${at}: has no operation for ${unknown - MOST_NAMED} more routes`);
  return { publicRoutes, pricedRoutes, remarks };
}

export function createDiscoverySource(log: Log): DiscoverySource {
  let last: ReadDiscovery | undefined;
  return {
    description: () => last?.description,
    read: async (config) => {
      last = await readDiscovery(config, last?.description);
      for (const remark of last?.remarks ?? []) log.warn(remark);
      return last?.discovery;
    },
    tell: async (routes) => {
      if (last === undefined) return;
      const { publicRoutes, pricedRoutes, remarks } = await lookAtRoutes(last, routes);
      log.info('facilitators are told of routes that are paid for, and may list them for everybody', {
        routes: publicRoutes,
        of: pricedRoutes,
      });
      for (const remark of remarks) log.warn(remark);
    },
  };
}
