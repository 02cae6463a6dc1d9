// The keys of the `page` section: what people see in a browser in place of a 402's JSON. A logo is read when the
// configuration is, and stands in it as a data URL.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { flag, text } from './fields.ts';
import { key, section } from './keys.ts';
import { codeOf } from './secret-files.ts';

const LOGO_BYTES = 16_384;
const LOGO = `a PNG, SVG or WebP file of at most ${LOGO_BYTES} bytes`;
const LINK_CHARACTERS = 200;

/** Section `page`; its paths are relative to `folder`. */
export function pageSection(folder: string) {
  return section({
    enabled: key('enabled', flag().default(true), 'False: browsers get the same JSON as programs.'),
    name: key(
      'name',
      text('a name of 1 to 80 characters', (value) => value.trim() !== '' && value.length <= 80).optional(),
      'The name of the seller. Left out: the host.',
    ),
    logo_file: key('logo', logo(folder).optional(), 'The logo of the seller.'),
    accent: key(
      'accent',
      text('a colour such as "#1652f0", in quotes', (value) => /^#[0-9a-fA-F]{6}$/.test(value)).default('#1652f0'),
      'The colour of the button. Its text is black or white, by contrast.',
    ),
    support: key(
      'support',
      text('a mailto: address or an http or https URL', (value) =>
        isLink(value, ['mailto:', 'https:', 'http:']),
      ).optional(),
      'Where customers find help.',
    ),
    terms_url: key('termsUrl', webLink().optional(), 'A link to the terms of use.'),
    privacy_url: key('privacyUrl', webLink().optional(), 'A link to the privacy policy.'),
  });
}

function webLink() {
  return text('an http or https URL', (value) => isLink(value, ['https:', 'http:']));
}

function isLink(value: string, protocols: readonly string[]): boolean {
  return value.length <= LINK_CHARACTERS && URL.canParse(value) && protocols.includes(new URL(value).protocol);
}

function logo(folder: string) {
  return text(LOGO).transform((name, context) => {
    const read = readLogo(path.resolve(folder, name));
    if ('problem' in read) context.addIssue({ code: 'custom', message: read.problem });
    return 'url' in read ? read.url : '';
  });
}

function readLogo(file: string): { readonly url: string } | { readonly problem: string } {
  let content: Buffer;
  try {
    content = readFileSync(file);
  } catch (error) {
    return { problem: `names a file that cannot be read (${codeOf(error)}); check the path and its permissions` };
  }
  const type = typeOf(content);
  if (content.length > LOGO_BYTES) return { problem: `names a file of ${content.length} bytes; write ${LOGO}` };
  if (type === undefined) return { problem: `names a file of another kind; write ${LOGO}` };
  return { url: `data:${type};base64,${content.toString('base64')}` };
}

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** Tells the kind of a picture by what is in it, whatever its name. */
function typeOf(content: Buffer): string | undefined {
  if (content.subarray(0, 8).equals(PNG)) return 'image/png';
  if (content.toString('latin1', 0, 4) === 'RIFF' && content.toString('latin1', 8, 12) === 'WEBP') return 'image/webp';
  return /^\uFEFF?\s*(?:<\?xml[^>]*>\s*|<!--[\s\S]*?-->\s*|<!DOCTYPE[^>]*>\s*)*<svg[\s>]/i.test(
    content.toString('utf8'),
  )
    ? 'image/svg+xml'
    : undefined;
}
