// Writes text into HTML, and into JSON inside HTML. Text stays text there, whatever it contains. Source: the HTML
// standard, sections 13.1.2 and 13.1.3.

/** Writes `text` as content or as an attribute's value in double quotes. */
export function html(text: string): string {
  return text.replace(/[&<>"\0-\x1f\x7f]/g, (character) => `&#${character.codePointAt(0)};`);
}

/** Writes `value` as JSON that ends no script element and opens none. */
export function jsonInHtml(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&]|[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
