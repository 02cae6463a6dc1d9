// Finds the word that was probably meant: unknown keys, flags, commands and names are answered with it. Only words
// of ours are ever suggested.

/** The one of `known` closest to `word`, or undefined if none is close enough to be what was meant. */
export function suggest(word: string, known: Iterable<string>): string | undefined {
  const wanted = plain(word);
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  // A third of the letters may be wrong: enough for a slip, too few to turn one word into any other.
  const allowed = Math.max(1, Math.floor(wanted.length / 3));
  for (const candidate of known) {
    const target = plain(candidate);
    const contained = wanted.length >= 4 && (target.startsWith(wanted) || wanted.startsWith(target));
    // Half a word is as far away as a word may be: it counts if nothing is closer.
    const distance = Math.min(editDistance(wanted, target), contained ? allowed : Number.POSITIVE_INFINITY);
    if (distance < bestDistance && distance <= allowed) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** `payToAddress`, `pay-to-address` and `pay_to_address` are one word. */
function plain(word: string): string {
  return word.slice(0, 64).toLowerCase().replace(/[_-]/g, '');
}

/** Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let older: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(
        (previous[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (previous[j - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (older[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    older = previous;
    previous = row;
  }
  return previous[b.length] ?? 0;
}
