// The `discovery` section: what is told of paid routes to those who list APIs for agents.
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { z } from 'zod';
import { parsePattern, type Pattern } from '../domain/pattern.ts';
import { described, text, whatStands } from './fields.ts';
import { key, section } from './keys.ts';

const MAX_TAGS = 5;
const MAX_ICON_URL = 2048;
const WORDS = '1 to 32 printable ASCII characters';
const isWords = (value: string): boolean => /^[\x20-\x7e]{1,32}$/.test(value);
const ICON = `an https URL of at most ${MAX_ICON_URL} characters, with a public host name`;
const PATTERN = 'a pattern, such as /internal/*';

/** As those who list APIs take one: no user, no address, no name of this machine. */
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

/** `folder`: relative paths are relative to it. */
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
    exclude: key('exclude', z.array(excluded).default([]), 'Paths that are not described to facilitators.'),
  });
}
