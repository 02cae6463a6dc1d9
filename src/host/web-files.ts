// Files of a page in a browser, each with its compressed forms, as plain data: between the script that makes them and the
// process that serves them they are text. Knows no domain word.
import { namesTag } from './entity-tag.ts';
import type { OwnResponse } from './respond.ts';

export type WebFile = {
  /** Path under which it is served. */
  readonly path: string;
  /** Media type. */
  readonly type: string;
  /** Entity tag of its raw form, with quotes. */
  readonly etag: string;
  readonly raw: Buffer;
  /** Undefined: a kind of file that compression makes no smaller. */
  readonly br: Buffer | undefined;
  readonly gz: Buffer | undefined;
};

/** Files by path. */
export type WebFiles = ReadonlyMap<string, Omit<WebFile, 'path'>>;

export function writeWebFiles(files: readonly WebFile[]): string {
  return JSON.stringify(
    files.map(({ raw, br, gz, ...file }) => ({
      ...file,
      raw: raw.toString('base64'),
      br: br?.toString('base64'),
      gz: gz?.toString('base64'),
    })),
  );
}

export function readWebFiles(text: string): WebFiles {
  const written = JSON.parse(text) as readonly (Record<'path' | 'type' | 'etag' | 'raw', string> & {
    readonly br?: string;
    readonly gz?: string;
  })[];
  const bytes = (base64: string | undefined): Buffer | undefined =>
    base64 === undefined ? undefined : Buffer.from(base64, 'base64');
  return new Map(
    written.map(({ path, type, etag, raw, br, gz }) => [
      path,
      { type, etag, raw: Buffer.from(raw, 'base64'), br: bytes(br), gz: bytes(gz) },
    ]),
  );
}

type WebFileRequest = {
  readonly 'accept-encoding'?: string | undefined;
  readonly 'if-none-match'?: string | undefined;
};

/** A file in the smallest form that the client takes; 304 if it has it. `headers` are added. */
export function webFileResponse(
  file: Omit<WebFile, 'path'>,
  asked: WebFileRequest,
  headers: readonly string[],
): OwnResponse {
  const { body, encoding } = formOf(file, asked['accept-encoding'] ?? '');
  // Another form is another representation, with a strong tag of its own.
  const etag = encoding === undefined ? file.etag : `${file.etag.slice(0, -1)}-${encoding}"`;
  const common = [...headers, 'ETag', etag, ...(file.br === undefined ? [] : ['Vary', 'Accept-Encoding'])];
  const known = asked['if-none-match'];
  if (known !== undefined && namesTag(known, etag, 'weak')) return { status: 304, headers: common, body: '' };
  const coded = encoding === undefined ? [] : ['Content-Encoding', encoding];
  return { status: 200, headers: [...common, 'Content-Type', file.type, ...coded], body };
}

function formOf(
  { raw, br, gz }: Omit<WebFile, 'path'>,
  accepted: string,
): { readonly body: Buffer; readonly encoding: 'br' | 'gzip' | undefined } {
  if (br !== undefined && takes(accepted, 'br')) return { body: br, encoding: 'br' };
  if (gz !== undefined && takes(accepted, 'gzip')) return { body: gz, encoding: 'gzip' };
  return { body: raw, encoding: undefined };
}

/** Whether `accepted`, an Accept-Encoding, names `coding` with a weight above zero (RFC 9110 section 12.5.3). */
function takes(accepted: string, coding: string): boolean {
  return accepted.split(',').some((part) => {
    const [name = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
    return name === coding && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
  });
}
