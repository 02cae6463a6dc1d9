// One string for equal texts: 100,000 routes have few methods, currencies, sources and dates between them, and whoever
// parses them gets a string of its own for each. Bounded, because what is pooled comes from outside.

const MAX_TEXTS = 1024;
/** Longer ones repeat too seldom. */
const MAX_LENGTH = 64;

/** Returns `text`, or an equal one that it returned before. For the time of one load. */
export function createTextPool(): (text: string) => string {
  const texts = new Map<string, string>();
  return (text) => {
    if (text.length > MAX_LENGTH) return text;
    const known = texts.get(text);
    if (known !== undefined) return known;
    if (texts.size < MAX_TEXTS) texts.set(text, text);
    return text;
  };
}
