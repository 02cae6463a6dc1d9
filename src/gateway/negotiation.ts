// Content negotiation for a 402: the navigation of a browser, apart from every other request. Only that one is shown the page
// for people. All others get the 402 that programs read.
import type { IncomingMessage } from 'node:http';

/** Whether a request without a payment comes from somebody who looks at a browser's window. */
export function asksForPage({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  const { accept } = headers;
  if (method !== 'GET' || accept === undefined || !/html/i.test(accept) || !prefersHtml(accept)) return false;
  const { 'sec-fetch-mode': mode, 'sec-fetch-dest': dest } = headers;
  if (mode === 'navigate' && dest === 'document') return true;
  // Browsers say so only to origins that they trust, and older ones never.
  const says = Object.keys(headers).some((name) => name.startsWith('sec-fetch-'));
  return !says && (headers['user-agent']?.includes('Mozilla/') ?? false);
}

/** Whether `accept` names a kind of HTML that it does not like less than JSON (RFC 9110 section 12.5.1). */
function prefersHtml(accept: string): boolean {
  const ranges = new Map<string, number>();
  for (const part of accept.toLowerCase().split(',')) {
    const [range = '', ...parameters] = part.split(';').map((text) => text.trim());
    ranges.set(range, weightOf(parameters));
  }
  const html = Math.max(ranges.get('text/html') ?? 0, ranges.get('application/xhtml+xml') ?? 0);
  const json = ranges.get('application/json') ?? ranges.get('application/*') ?? ranges.get('*/*') ?? 0;
  return html > 0 && html >= json;
}

/** The weight of a range; 0 for one that cannot be read, which is not preferred. */
function weightOf(parameters: readonly string[]): number {
  const written = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  if (written === undefined) return 1;
  return /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(written) ? Number(written) : 0;
}
