// Reads JSON that somebody else wrote. What nests deeper, holds more or longer than its reader expects is refused as a
// whole, and so are member names that JavaScript gives a meaning of its own (`__proto__`): nothing that comes out of here
// may surprise whoever copies, walks or logs it. Says nothing about meaning: schemas do.

export type JsonLimits = {
  /** Objects and arrays inside each other; a bare value has depth 0. */
  readonly depth: number;
  /** Members and items, all together. */
  readonly nodes: number;
  /** UTF-16 units of one string or member name. */
  readonly string: number;
};

export type BoundedJson = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly why: string };

const RESERVED = new Set(['__proto__', 'constructor', 'prototype']);
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The value that `bytes` write, or `why` not: a phrase without any of their content. */
export function readJson(bytes: Uint8Array, limits: JsonLimits): BoundedJson {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch {
    return { ok: false, why: 'is not JSON in UTF-8' };
  }
  const why = findExcess(value, limits);
  return why === undefined ? { ok: true, value } : { ok: false, why };
}

/** Walks with a stack of its own and stops at the first excess, so that a bomb costs no more than its limit. */
function findExcess(root: unknown, { depth, nodes, string }: JsonLimits): string | undefined {
  const open: { readonly value: unknown; readonly depth: number }[] = [{ value: root, depth: 0 }];
  let seen = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value } = next;
    if (typeof value === 'string' && value.length > string) return `holds a string longer than ${string} characters`;
    if (typeof value !== 'object' || value === null) continue;
    if (next.depth >= depth) return `nests deeper than ${depth}`;
    const inside = next.depth + 1;
    if (Array.isArray(value)) {
      if ((seen += value.length) > nodes) return `holds more than ${nodes} values`;
      for (const item of value) open.push({ value: item, depth: inside });
      continue;
    }
    for (const [name, member] of Object.entries(value)) {
      if (RESERVED.has(name)) return `holds a member named ${name}`;
      if (name.length > string) return `holds a name longer than ${string} characters`;
      if (++seen > nodes) return `holds more than ${nodes} values`;
      open.push({ value: member, depth: inside });
    }
  }
  return undefined;
}
