// Reads the number of units from a response's body as it streams: from one JSON document, or from the last event that has it.
// The type of the content says which; any other body, and one that is compressed, is not read.
import { EventNumber } from './event-number.ts';
import { JsonNumber } from './json-number.ts';
import type { MeterReading, MeterSource } from './meter.ts';

type UsageSource = Extract<MeterSource, { kind: 'usage' }>;

/** Reader of a body: fed piece by piece, then asked when the body is whole. */
export type UsageReader = { readonly push: (bytes: Uint8Array) => void; readonly end: () => MeterReading };

const UNREADABLE: UsageReader = { push: () => undefined, end: () => ({ kind: 'malformed' }) };

/** The reader for a body with these headers: flat name, value pairs. */
export function readUsage({ path, tailBytes }: UsageSource, headers: readonly string[]): UsageReader {
  const types = valuesOf(headers, 'content-type');
  const isPlain = valuesOf(headers, 'content-encoding').every((each) => each.trim().toLowerCase() === 'identity');
  const [type = ''] = (types[0] ?? '').toLowerCase().split(';', 1);
  if (types.length !== 1 || !isPlain) return UNREADABLE;
  switch (type.trim()) {
    case 'text/event-stream':
      return readerOf(new EventNumber(path, tailBytes));
    case 'application/json':
      return readerOf(new JsonNumber(path));
    default:
      return /^application\/[^/ ]+\+json$/.test(type.trim()) ? readerOf(new JsonNumber(path)) : UNREADABLE;
  }
}

function readerOf(number: EventNumber | JsonNumber): UsageReader {
  return { push: (bytes) => number.push(bytes), end: () => number.end() };
}

/** The values of a header or trailer, in any case. */
export function valuesOf(headers: readonly string[], name: string): readonly string[] {
  const lower = name.toLowerCase();
  return headers.filter((_, i) => i % 2 === 1 && headers[i - 1]?.toLowerCase() === lower);
}
