// Values that are JSON, or JSON in base64 as x402 writes it into headers, as lines for people. Anything else stays as it is.

export function readHeader(value: string): string {
  for (const text of [value, fromBase64(value)]) {
    if (text === null || !/^\s*[[{]/.test(text)) continue;
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      // Not this form: the next one, or the value as it is.
    }
  }
  return value;
}

function fromBase64(value: string): string | null {
  try {
    const bytes = Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
