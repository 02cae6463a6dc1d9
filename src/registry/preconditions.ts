// Entity tags and conditional requests (RFC 9110 sections 8.8 and 13). A tag is a hash of what would be answered, so it
// is strong by construction and nothing has to be stored for it.
import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { toWire, type Route } from '../domain/route.ts';

export function routeEtag(route: Route): string {
  return `"${hash('sha256', JSON.stringify(toWire(route)), 'base64url').slice(0, 22)}"`;
}

/** For GET and HEAD: `tags` are the tags of all variants of what would be answered. */
export function isUnmodified(headers: IncomingHttpHeaders, ...tags: readonly string[]): boolean {
  const wanted = headers['if-none-match'];
  return wanted !== undefined && tags.some((tag) => matches(wanted, tag, 'weak'));
}

/** For methods that change something: whether the client's conditions allow it. */
export function mayChange(headers: IncomingHttpHeaders, tag: string): boolean {
  const required = headers['if-match'];
  if (required !== undefined && !matches(required, tag, 'strong')) return false;
  const excluded = headers['if-none-match'];
  return excluded === undefined || !matches(excluded, tag, 'weak');
}

const TAG = /(W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g;

/** A list that holds nothing readable matches nothing: a write with a condition we cannot read is refused. */
function matches(list: string, tag: string, comparison: 'strong' | 'weak'): boolean {
  if (list.trim() === '*') return true;
  for (const [, weak, opaque] of list.matchAll(TAG)) {
    if (opaque === tag && (comparison === 'weak' || weak === undefined)) return true;
  }
  return false;
}
