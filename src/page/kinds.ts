// Kinds of answers by their media type: what is shown as text, as JSON, as a picture, as a place elsewhere, or not at all.

export type AnswerKind = 'json' | 'text' | 'events' | 'picture' | 'web' | 'place' | 'other';

const PICTURES = /^image\/(?:png|jpeg|gif|webp|avif|svg\+xml)$/;
/** JSON of several lines each is no JSON: it is shown as it is. */
const LINES = /^application\/(?:(?:x-)?ndjson|jsonl|ya?ml|xml)$/;

export function kindOf(type: string): AnswerKind {
  const media = mediaOf(type);
  if (media === 'application/vnd.tollgate.redirect+json') return 'place';
  if (media === 'text/event-stream') return 'events';
  if (media === 'text/html') return 'web';
  if (PICTURES.test(media)) return 'picture';
  if (/^application\/(?:[\w.-]+\+)?json$/.test(media)) return 'json';
  return media.startsWith('text/') || LINES.test(media) ? 'text' : 'other';
}

export function isText(kind: AnswerKind): boolean {
  return kind === 'json' || kind === 'text' || kind === 'events';
}

/** Media type of a Content-Type in lower case: `text/plain` for `Text/Plain; charset=utf-8`. */
export function mediaOf(type: string): string {
  return (type.split(';')[0] ?? '').trim().toLowerCase();
}

export function decoderOf(type: string): TextDecoder {
  const [, charset = 'utf-8'] = /charset="?([\w-]+)/i.exec(type) ?? [];
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder();
  }
}

export function sizeOf(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
