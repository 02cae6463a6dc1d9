// Entity tags in conditional requests (RFC 9110 sections 8.8 and 13.1).

const TAG = /(W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g;

/**
 * Whether `list`, an If-Match or If-None-Match, names `tag`. A list that holds nothing readable names nothing: a write with
 * a condition that cannot be read is refused.
 */
export function namesTag(list: string, tag: string, comparison: 'strong' | 'weak'): boolean {
  if (list.trim() === '*') return true;
  for (const [, weak, opaque] of list.matchAll(TAG)) {
    if (opaque === tag && (comparison === 'weak' || weak === undefined)) return true;
  }
  return false;
}
