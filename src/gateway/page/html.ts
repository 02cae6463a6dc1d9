// Writes text into HTML and into JSON that stands in HTML. Both come out as ASCII, so that the length of a document is known
// and nothing of a charset is left to guess.

/** `text` as content or as an attribute's value in double quotes. */
export function html(text: string): string {
  return text.replace(/[&<>"']|[^\x20-\x7e]/gu, (character) => `&#${character.codePointAt(0)};`);
}

/** `value` as JSON that ends no script element and opens none. */
export function jsonInHtml(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&]|[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
