// Reads what a request to the registry carries: path and JSON body. Everything has a limit, nothing is guessed:
// what cannot be read exactly is refused with what would be right.
import type { IncomingMessage } from 'node:http';
import { problem, type Problem } from '../../domain/problem.ts';

/** Path and query (without `?`) of a request target; a path's one trailing slash does not count. */
export function splitUrl(url: string): { readonly path: string; readonly query: string } {
  const origin = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '');
  const mark = origin.indexOf('?');
  const path = mark < 0 ? origin : origin.slice(0, mark);
  return {
    path: path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path,
    query: mark < 0 ? '' : origin.slice(mark + 1),
  };
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** The parsed body, a problem, or undefined if the client went away. `mediaTypes` are the ones that are taken. */
export async function readJsonBody(
  req: IncomingMessage,
  limit: number,
  mediaTypes: readonly string[],
): Promise<{ readonly value: unknown } | Problem | undefined> {
  const refused = checkMediaType(req, mediaTypes);
  if (refused) return refused;
  const bytes = await readBytes(req, limit);
  if (bytes === undefined) return undefined;
  if (bytes === 'too_large') return problem('body_too_large', `The body is larger than ${limit} bytes.`);
  if (bytes.length === 0) return problem('malformed', 'The body is empty; send a JSON object.');
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch {
    return problem('malformed', 'The body is not valid UTF-8.');
  }
  try {
    return { value: JSON.parse(text) };
  } catch {
    return problem('malformed', 'The body is not valid JSON.');
  }
}

function checkMediaType(req: IncomingMessage, mediaTypes: readonly string[]): Problem | undefined {
  const [type, ...parameters] = (req.headers['content-type'] ?? '').split(';').map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice('charset='.length);
  const coding = req.headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  const readable = charset === undefined || /^"?utf-?8"?$/.test(charset);
  if (type !== undefined && mediaTypes.includes(type) && readable && coding === 'identity') return undefined;
  const accepted = mediaTypes.join(', ');
  return problem('media_type_unsupported', `Send the body as ${mediaTypes[0]}, in UTF-8 and not compressed.`, {
    headers: { [req.method === 'PATCH' ? 'Accept-Patch' : 'Accept-Post']: accepted },
  });
}

/** Reads a body and keeps nothing over the limit. Node discards a body whose declared length is over it. */
async function readBytes(req: IncomingMessage, limit: number): Promise<Buffer | 'too_large' | undefined> {
  if (Number(req.headers['content-length'] ?? 0) > limit) return 'too_large';
  // A stream without a body has ended before anybody listens, and if the client is gone it has closed.
  if (req.readableEnded) return Buffer.alloc(0);
  if (req.destroyed) return undefined;
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const done = (result: Buffer | 'too_large' | undefined): void => {
      req.off('data', take);
      resolve(result);
    };
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > limit) {
        // The rest is read and dropped, so that the connection can be used again.
        done('too_large');
      } else chunks.push(chunk);
    };
    req.on('data', take);
    req.once('end', () => done(Buffer.concat(chunks)));
    req.once('error', () => done(undefined));
    req.once('close', () => done(undefined));
  });
}
