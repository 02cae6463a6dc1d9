// The hash FNV-1a, where a text is too long to keep and a number will do. It is no secret and no proof: anybody can
// make two texts that share it. Source: FNV-1a, by Fowler, Noll and Vo.

const FNV_OFFSET = 0x811c9dc5;
export const FNV_PRIME = 0x01000193;

/** Hashes the characters of `text` from `start` to `end` into a signed integer of 32 bits; `seed` begins the hash. */
export function fnv1a(text: string, seed = FNV_OFFSET, start = 0, end = text.length): number {
  let hash = seed;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ text.charCodeAt(at), FNV_PRIME);
  return hash | 0;
}
