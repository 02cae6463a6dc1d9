// Reads JSON of another party. What nests deeper, holds more or longer than its reader expects is refused as a whole. So
// are member names that JavaScript gives a meaning of its own (`__proto__`): nothing that comes out of here may surprise
// code that copies, walks or logs it. Says nothing about meaning: schemas do.
import { isUtf8 } from 'node:buffer';

export type JsonLimits = {
  /** Objects and arrays inside each other; a bare value has depth 0. */
  readonly depth: number;
  /** Members and items, all together. */
  readonly nodes: number;
  /** UTF-16 units of one string or member name. */
  readonly string: number;
};

export type BoundedJson =
  | { readonly ok: true; readonly value: unknown }
  /** `isJson`: it is, and exceeds the limits. */
  | { readonly ok: false; readonly why: string; readonly isJson: boolean };

const NOT_JSON: BoundedJson = { ok: false, why: 'is not JSON in UTF-8', isJson: false };
const RESERVED = new Set(['__proto__', 'constructor', 'prototype']);

/** The value that `bytes` write, or `why` not: a phrase without any of their content. */
export function readJson(bytes: Uint8Array, limits: JsonLimits): BoundedJson {
  let value: unknown;
  try {
    if (!isUtf8(bytes)) return NOT_JSON;
    // A byte order mark stays, and is no JSON.
    value = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  } catch {
    return NOT_JSON;
  }
  const why = findExcess(value, limits);
  return why === undefined ? { ok: true, value } : { ok: false, why, isJson: true };
}

/** Stops at the first excess, so that a bomb costs no more than its limit; and goes no deeper than the limit allows. */
function findExcess(root: unknown, { depth, nodes, string }: JsonLimits): string | undefined {
  let seen = 0;
  const walk = (value: unknown, above: number): string | undefined => {
    if (typeof value === 'string') {
      return value.length > string ? `holds a string longer than ${string} characters` : undefined;
    }
    if (typeof value !== 'object' || value === null) return undefined;
    if (above >= depth) return `nests deeper than ${depth}`;
    if (Array.isArray(value)) {
      if ((seen += value.length) > nodes) return `holds more than ${nodes} values`;
      for (const item of value) {
        const why = walk(item, above + 1);
        if (why !== undefined) return why;
      }
      return undefined;
    }
    for (const name of Object.keys(value)) {
      if (RESERVED.has(name)) return `holds a member named ${name}`;
      if (name.length > string) return `holds a name longer than ${string} characters`;
      if (++seen > nodes) return `holds more than ${nodes} values`;
      const why = walk(Reflect.get(value, name), above + 1);
      if (why !== undefined) return why;
    }
    return undefined;
  };
  return walk(root, 0);
}
