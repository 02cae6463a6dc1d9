// The body of an event as it is sent: the charge as the billing endpoints show it, the route, or what needs attention. Made of
// what was written with the event, so every attempt sends the same, whatever became of the charge since.
import type { WebhookEvent } from '../../domain/webhooks/webhook-store.ts';
import { viewCharge, type NamedNetworks } from '../charges/charge-view.ts';
import { readListed } from '../store/charge-values.ts';
import type { Row } from '../store/rows.ts';

export type BodyOptions = {
  readonly networks: NamedNetworks;
  /** The registry that a charge belongs to; null if it is not known. */
  readonly registryId: () => string | null;
};

/** Bytes that every body stays below. */
const MOST_BYTES = 16 * 1024;

export function bodyOf(event: WebhookEvent, options: BodyOptions): string {
  let data = dataOf(event, options);
  for (;;) {
    const body = JSON.stringify({ type: event.type, timestamp: new Date(event.at).toISOString(), data });
    if (Buffer.byteLength(body) < MOST_BYTES) return body;
    data = withLongestCut(data);
  }
}

type EventData = Readonly<Record<string, unknown>>;

function dataOf({ type, at, sequence, content }: WebhookEvent, { networks, registryId }: BodyOptions): EventData {
  const read: unknown = JSON.parse(content);
  if (!isRecord(read)) throw new TypeError('the store holds an event without data');
  if (!type.startsWith('charge.')) return read;
  const row: Row = read;
  return { ...viewCharge(readListed(row, at), networks), sequence, registry_id: registryId() };
}

/** Cuts the longest text, such as a path, in two. */
function withLongestCut(data: EventData): EventData {
  const texts = Object.entries(data).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  const [name, value] = texts.reduce(
    (longest, each) => (each[1].length > longest[1].length ? each : longest),
    ['', ''],
  );
  if (value.length < 2) throw new RangeError('an event is too large to be sent');
  return { ...data, [name]: value.slice(0, value.length >> 1).toWellFormed() };
}

function isRecord(value: unknown): value is EventData {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
