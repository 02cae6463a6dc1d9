// Entity tags and conditional requests (RFC 9110 sections 8.8 and 13). A tag is a hash of what would be answered, so it
// is strong by construction and nothing has to be stored for it.
import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { toWire, type Route } from '../../domain/routing/route.ts';
import { namesTag } from '../../host/entity-tag.ts';

export function routeEtag(route: Route): string {
  return `"${hash('sha256', JSON.stringify(toWire(route)), 'base64url').slice(0, 22)}"`;
}

/** Whether a GET or HEAD is answered 304. `tags` are the tags of all variants of what would be answered. */
export function isUnmodified(headers: IncomingHttpHeaders, ...tags: readonly string[]): boolean {
  const wanted = headers['if-none-match'];
  return wanted !== undefined && tags.some((tag) => namesTag(wanted, tag, 'weak'));
}

/** Whether the client's conditions allow a method that changes something. */
export function mayChange(headers: IncomingHttpHeaders, tag: string): boolean {
  const required = headers['if-match'];
  if (required !== undefined && !namesTag(required, tag, 'strong')) return false;
  const excluded = headers['if-none-match'];
  return excluded === undefined || !namesTag(excluded, tag, 'weak');
}
