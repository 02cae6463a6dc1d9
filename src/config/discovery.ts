// The `discovery` section: what is told of paid routes to those who list APIs for agents, at facilitators and at the
// origin itself. The owner's text for `/llms.txt` is read when the configuration is.
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { z } from 'zod';
import { parsePattern, type Pattern } from '../domain/routing/pattern.ts';
import { described, flag, text, whatStands } from './fields.ts';
import { key, section } from './keys.ts';
import { codeOf } from './secret-files.ts';

const MAX_TAGS = 5;
const MAX_ICON_URL = 2048;
const WORDS = '1 to 32 printable ASCII characters';
const isWords = (value: string): boolean => /^[\x20-\x7e]{1,32}$/.test(value);
const ICON = `an https URL of at most ${MAX_ICON_URL} characters, with a public host name`;
const PATTERN = 'a pattern, such as /internal/*';
const MAX_TITLE = 128;
const MAX_EMAIL = 254;
const MAX_DOCS_URL = 2048;
const MAX_LLMS_BYTES = 65_536;
const LLMS = `a file of UTF-8 text, of at most ${MAX_LLMS_BYTES} bytes`;
const isTitle = (value: string): boolean =>
  value.trim() !== '' && value.length <= MAX_TITLE && !/[\u0000-\u001f\u007f]/.test(value);
const isEmail = (value: string): boolean =>
  value.length <= MAX_EMAIL && /^[^\s@<>"(),:;\\[\]]+@[A-Za-z0-9.-]+\.[A-Za-z0-9-]+$/.test(value);
const isWebUrl = (value: string): boolean =>
  value.length <= MAX_DOCS_URL && /^https?:\/\/[^\s\\]+$/.test(value) && URL.canParse(value);

/** Whether a list of APIs takes the icon: no user, no address, no name of this machine. */
function isIcon(value: string): boolean {
  if (value.length > MAX_ICON_URL || !/^https:\/\/[^\s\\@]+$/.test(value) || !URL.canParse(value)) return false;
  const { hostname } = new URL(value);
  return (
    /^[a-z0-9.-]+\.[a-z][a-z0-9-]*$/.test(hostname) &&
    isIP(hostname) === 0 &&
    !/\.local(?:host|domain)?$/.test(hostname)
  );
}

const excluded = described(
  z.unknown().transform((value, context): Pattern => {
    const parsed = typeof value === 'string' ? parsePattern(value) : undefined;
    if (parsed?.ok === true) return parsed.pattern;
    const why = parsed === undefined ? `${whatStands(value)}; write ${PATTERN}` : `is not usable: ${parsed.reason}`;
    context.addIssue({ code: 'custom', message: why });
    return z.NEVER;
  }),
  PATTERN,
);

/** Section `discovery`; its paths are relative to `folder`. */
export function discoverySection(folder: string) {
  return section({
    openapi: key(
      'openapi',
      text('the file of an OpenAPI document, YAML or JSON')
        .transform((name) => ({ name, file: resolve(folder, name) }))
        .optional(),
      'Describes the requests and responses of the API; OpenAPI 3.0 or 3.1, up to 2 MiB.',
    ),
    service_name: key('serviceName', text(WORDS, isWords).optional(), 'The name of the service.'),
    tags: key(
      'tags',
      z.array(text(WORDS, isWords)).max(MAX_TAGS, `is longer than ${MAX_TAGS}; keep those that say most`).optional(),
      'The subject of the service, in up to 5 tags.',
    ),
    icon_url: key('iconUrl', text(ICON, isIcon).optional(), 'A picture of the service.'),
    exclude: key(
      'exclude',
      z.array(excluded).default([]),
      'Paths that are told neither to facilitators nor in `/openapi.json` and `/llms.txt`.',
    ),
    serve: key(
      'serve',
      flag().default(true),
      'True: the proxy answers `/openapi.json` and `/llms.txt` with what is sold, unless a route covers them.',
    ),
    contact: key('contact', text('an e-mail address', isEmail).optional(), 'Whom indexes and agents write to.'),
    docs_url: key('docsUrl', text('an http or https URL', isWebUrl).optional(), 'Documentation for people.'),
    title: key(
      'title',
      text(`a title of 1 to ${MAX_TITLE} characters`, isTitle).optional(),
      'The title of `/openapi.json`. Left out: `service_name`, else that of the OpenAPI document, else the host.',
    ),
    llms_file: key('llms', llmsText(folder).optional(), 'A text of your own for `/llms.txt`. Left out: it is made.'),
  });
}

function llmsText(folder: string) {
  return text(LLMS).transform((name, context) => {
    const file = resolve(folder, name);
    const read = readText(file);
    if ('problem' in read) context.addIssue({ code: 'custom', message: read.problem });
    return { file, text: 'text' in read ? read.text : '' };
  });
}

function readText(file: string): { readonly text: string } | { readonly problem: string } {
  let content: Buffer;
  try {
    content = readFileSync(file);
  } catch (error) {
    return { problem: `names a file that cannot be read (${codeOf(error)}); check the path and its permissions` };
  }
  if (content.length > MAX_LLMS_BYTES) return { problem: `names a file of ${content.length} bytes; write ${LLMS}` };
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(content) };
  } catch {
    return { problem: `names a file of another kind; write ${LLMS}` };
  }
}
