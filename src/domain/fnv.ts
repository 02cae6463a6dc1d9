// The hash FNV-1a, where a text is too long to keep and a number will do. It is no secret and no proof: anybody can
// make two texts that share it. Source: FNV-1a, by Fowler, Noll and Vo.

/** Of the characters, as a signed integer of 32 bits. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash | 0;
}
