// The texts of a registry's event stream (Server-Sent Events): changes of routes, a reset, and the head of the set.
import { toWire } from '../../domain/routing/route.ts';
import type { SetProof } from '../../domain/routing/set-proof.ts';
import type { RouteEvent } from '../routes/route-index.ts';

export function writeChange(change: RouteEvent): string {
  switch (change.kind) {
    case 'created':
    case 'updated':
      return writeEvent(change, toWire(change.route));
    case 'deleted':
      return writeEvent(change, { id: change.route.id });
    case 'reset':
      return writeReset(change.revision);
    default:
      return change satisfies never;
  }
}

export function writeReset(revision: number): string {
  return `event: reset\nid: ${revision}\ndata: {"revision":${revision}}\n\n`;
}

export function writeHead({ revision, routes, digest }: SetProof): string {
  return `event: head\nid: ${revision}\ndata: ${JSON.stringify({ revision, routes, digest })}\n\n`;
}

function writeEvent({ kind, revision }: Pick<RouteEvent, 'kind' | 'revision'>, data: object): string {
  return `event: route.${kind}\nid: ${revision}\ndata: ${JSON.stringify(data)}\n\n`;
}
