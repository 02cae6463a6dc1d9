// The discovery of a process: what it tells of paid routes, by the API description that the configuration names. Neither a
// start nor a reload waits for that: it is read beside them, and is in force when it has been read. A description that
// cannot be used leaves the last one that could.
import { setImmediate as breathe } from 'node:timers/promises';
import type { Config, LoadedConfig } from '../../config/config.ts';
import { readOpenApiFile } from '../../config/openapi-file.ts';
import { createDiscovery, type Discovery } from '../../domain/discovery/listing.ts';
import type { OpenApi } from '../../domain/discovery/openapi.ts';
import type { Route } from '../../domain/routing/route.ts';
import type { Log } from '../../host/log.ts';

type ReadDiscovery = {
  readonly discovery: Discovery;
  /** Remarks, each as `file:line: what is wrong`. */
  readonly remarks: readonly string[];
  /** Description that can be used; undefined: there is none, or it could not be read. */
  readonly description: NamedDescription | undefined;
};
type NamedDescription = OpenApi & { readonly name: string };
/** Description in force. `unread`: the file is not read yet. Undefined: none can be used. */
export type DescriptionInForce = NamedDescription | 'unread' | undefined;

type Section = NonNullable<Config['discovery']>;

export type DiscoverySource = {
  /** Follows the description in force; undefined: `config` wants none. */
  readonly of: (config: Pick<Config, 'discovery'>) => Discovery | undefined;
  /** Begins to read what `config` names; what is read is in force then. */
  readonly begin: (config: Pick<Config, 'discovery'>) => void;
  readonly inForce: () => DescriptionInForce;
  /** Calls `listener` each time that a description was read. */
  readonly onRead: (listener: () => void) => void;
  /** Says what is public of `routes`, once the description has been read. */
  readonly tell: (routes: readonly Route[]) => Promise<void>;
  /** Ends what is being read. */
  readonly close: () => void;
};

/** Routes without an operation that are named one by one. */
const MOST_NAMED = 20;
/** Routes that are looked at before others run: about a millisecond. */
const SLICE = 64;

type ReadOptions = {
  /** Description that could be read before. */
  readonly last?: NamedDescription | undefined;
  /** Gives up reading. */
  readonly signal?: AbortSignal;
};

/** Reads the discovery; undefined: `config` wants none. */
export async function readDiscovery(
  { discovery: section }: Pick<LoadedConfig, 'discovery'>,
  { last, signal }: ReadOptions = {},
): Promise<ReadDiscovery | undefined> {
  if (section === undefined) return undefined;
  const { openapi } = section;
  const read = openapi === undefined ? undefined : await readOpenApiFile(openapi.file, { signal });
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

/** Makes the discovery that one description gives. */
function discoveryOf(
  { serviceName, tags, iconUrl, exclude }: Section,
  description: NamedDescription | undefined,
): Discovery {
  const service = { serviceName, tags, iconUrl };
  return createDiscovery({ service, exclude, operations: description?.operations ?? [] });
}

/** Follows the description in force: it is read anew for each question. What is not read yet is not told. */
export function followDescription(section: Section, inForce: () => DescriptionInForce): Discovery {
  let built: { readonly of: NamedDescription | undefined; readonly discovery: Discovery } | undefined;
  const current = (): Discovery | undefined => {
    const of = section.openapi === undefined ? undefined : inForce();
    if (of === 'unread') return undefined;
    if (built === undefined || built.of !== of) built = { of, discovery: discoveryOf(section, of) };
    return built.discovery;
  };
  return {
    listingOf: (route, method, path) => current()?.listingOf(route, method, path),
    standingOf: (route) => current()?.standingOf(route) ?? 'hidden',
  };
}

/**
 * Counts how many of `routes` will be public, and lists those of them that the description does not know. Many of them
 * stall nothing.
 */
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
  const listeners: (() => void)[] = [];
  let inForce: DescriptionInForce = 'unread';
  let reading: { readonly given: AbortController; readonly read: Promise<ReadDiscovery | undefined> } | undefined;

  const takeOn = ({ description, remarks }: ReadDiscovery): void => {
    const isNew = description !== undefined && description !== inForce;
    inForce = description;
    for (const remark of remarks) log.warn(remark);
    if (isNew)
      log.info('the API description is in force', {
        file: description.name,
        operations: description.operations.length,
      });
    for (const listener of listeners) listener();
  };

  return {
    of: ({ discovery }) => discovery && followDescription(discovery, () => inForce),
    begin: ({ discovery }) => {
      reading?.given.abort();
      const given = new AbortController();
      const last = inForce === 'unread' ? undefined : inForce;
      const isNamed = discovery?.openapi !== undefined;
      if (!isNamed) inForce = 'unread';
      const read = readDiscovery({ discovery }, { last, signal: given.signal }).then((result) => {
        if (given.signal.aborted) return undefined;
        if (isNamed && result !== undefined) takeOn(result);
        return result;
      });
      read.catch((error: unknown) => log.error('the API description was not read', { error }));
      reading = { given, read };
    },
    inForce: () => inForce,
    onRead: (listener) => void listeners.push(listener),
    tell: async (routes) => {
      const read = await reading?.read.catch(() => undefined);
      if (read === undefined) return;
      const { publicRoutes, pricedRoutes, remarks } = await lookAtRoutes(read, routes);
      log.info('facilitators are told of routes that are paid for, and may list them for everybody', {
        routes: publicRoutes,
        of: pricedRoutes,
      });
      for (const remark of remarks) log.warn(remark);
    },
    close: () => reading?.given.abort(),
  };
}
