// Folds the name of a parameter to what any framework may read it as. Two spellings of one fold can reach the API as the
// same parameter, so no price is made of either: PHP reads `n[]` and ` n` as `n`, others read names in any case, decode
// escapes twice, or bind `_n` and `!n` to `n`. One spelling too many here costs a 400; one too few is a cheaper request.

const FOLDED = /^[a-z0-9]+$/;
const ESCAPES_OF_IIS = /%u([0-9a-f]{4})/gi;
const ESCAPE = /%[0-9a-f]{2}/i;
const ESCAPES = /%([0-9a-f]{2})/gi;
/** Where a name ends for some: a bracket of a list, or a control character. */
const END = /[[\u0000-\u001f\u007f]/;
const MARKS = /[^\p{L}\p{N}]+/gu;
/** Rounds of decoding: once by the API, and once more by whatever stands before it. */
const ROUNDS = 3;

/** Where it ends for those who make an object of `n.x` as well. */
const STEM_END = /[[.\u0000-\u001f\u007f]/;

export function foldName(raw: string): string {
  return FOLDED.test(raw) ? raw : fold(raw, END);
}

/** Folds the first part of a dotted name. */
export function foldStem(raw: string): string {
  return FOLDED.test(raw) ? raw : fold(raw, STEM_END);
}

function fold(raw: string, ending: RegExp): string {
  let text = raw;
  for (let round = 0; round < ROUNDS && text.includes('%'); round++) text = decodeLeniently(text);
  text = text
    .normalize('NFKC')
    .replace(/[\u0130\u0131]/g, 'i')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKC');
  const end = text.slice(1).search(ending);
  return (end < 0 ? text : text.slice(0, end + 1)).replace(MARKS, '');
}

/** Decodes what can be decoded; bytes that are not UTF-8 become a mark, which is left out. */
function decodeLeniently(text: string): string {
  const plain = text.replace(ESCAPES_OF_IIS, (_, code: string) =>
    encodeURIComponent(String.fromCharCode(Number.parseInt(code, 16)).toWellFormed()),
  );
  if (!ESCAPE.test(plain)) return plain;
  // One character a byte: of what was decoded before as well.
  const bytes = Buffer.from(plain).toString('latin1');
  const decoded = bytes.replace(ESCAPES, (_, byte: string) => String.fromCharCode(Number.parseInt(byte, 16)));
  return Buffer.from(decoded, 'latin1').toString();
}
