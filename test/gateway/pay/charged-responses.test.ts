// Which responses are charged. A redirect is judged by what is configured, never by what the client says of itself.
import { describe, expect, it } from 'vitest';
import { isCharged, ownAuthorities } from '../../../src/gateway/pay/charged-responses.ts';

const upstream = new URL('http://127.0.0.1:3000');
const own = ownAuthorities({
  publicUrl: 'https://api.example.com',
  hosts: [
    { host: 'www.example.net', port: undefined },
    { host: 'edge.example.net', port: 8443 },
    { host: '[::1]', port: undefined },
  ],
  upstream,
});
const nothingSaid = ownAuthorities({ publicUrl: undefined, hosts: [], upstream });

describe('by status', () => {
  it.each([101, 200, 201, 204, 206, 299, 304])('behaviour: a response of %i is charged', (status) => {
    expect(isCharged(status, [], own)).toBe(true);
  });
  it('attack: a response of 304 is charged, also if it says that it leads to this API', () => {
    expect(isCharged(304, ['Location', '/login'], own)).toBe(true);
  });
  it.each([400, 401, 404, 410, 412, 416, 422, 429, 500, 502, 503])(
    'behaviour: a response of %i is not charged',
    (status) => {
      expect(isCharged(status, ['Location', 'https://elsewhere.example/'], own)).toBe(false);
    },
  );
});

/** Stays with nothing configured as well. */
const WITHOUT_AUTHORITY = [
  '/',
  '/login',
  '/a:b',
  'login',
  './login',
  '../x',
  '?page=2',
  '#top',
  '',
  'a/b:c',
  '/a b',
  '/@x',
  '/s\u00f8k',
  'x@y',
  '/r?u=http://x@y\\z',
];
const OURS = [
  'https://api.example.com',
  'https://api.example.com/x',
  'HTTPS://API.EXAMPLE.COM:443/x',
  '//api.example.com/x',
  'http://www.example.net/',
  'https://www.example.net?x',
  'https://edge.example.net:8443/',
  'http://[::1]/x',
  'http://127.0.0.1:3000/signed',
  '//127.0.0.1:3000/signed',
];
const AWAY = [
  'https://files.example.net/signed',
  'http://api.example.com/x',
  'https://api.example.com:8443/x',
  'https://edge.example.net/',
  'https://www.example.net:3000/',
  'http://127.0.0.1/',
  '//evil',
  '///evil',
  '////evil',
  '/\\evil',
  '\\/evil',
  '\\\\evil',
  '/\t/evil',
  '/\n/evil',
  ' //evil',
  '\u0001//evil',
  'http:evil',
  'https:/evil',
  'https:///evil',
  'https:\\\\evil',
  'ftp://api.example.com/',
  'javascript:0',
  'mailto:a@b',
  'evil:80/x',
  'https://api.example.com@evil/',
  'https://api.example.com\\@evil/',
  'https://api.example.com\\.evil/',
  'https://api.example.com:x/',
  'https://api.example.com:99999/',
  'https://api.example.com%2eevil/',
  'https://\u{ff41}pi.example.com/',
];

describe('a redirect', () => {
  it.each(WITHOUT_AUTHORITY)('behaviour: a redirect to %j stays and is free', (location) => {
    expect(isCharged(302, ['Location', location], own)).toBe(false);
    expect(isCharged(302, ['location', location], nothingSaid)).toBe(false);
  });
  it.each(OURS)('behaviour: a redirect to %j is ours and free if that is configured', (location) => {
    expect(isCharged(307, ['LOCATION', location], own)).toBe(false);
    expect(isCharged(307, ['Location', location], nothingSaid)).toBe(true);
  });
  it.each(AWAY)('attack: a redirect to %j leads away and is charged', (location) => {
    expect(isCharged(302, ['Location', location], own)).toBe(true);
    expect(isCharged(302, ['Location', location], nothingSaid)).toBe(true);
  });
  it('attack: a redirect that names no place, or two of them, cannot be judged and is charged', () => {
    expect(isCharged(302, ['Content-Type', 'location'], own)).toBe(true);
    expect(isCharged(301, ['Location', '/a', 'location', '/b'], own)).toBe(true);
    expect(isCharged(300, [], own)).toBe(true);
  });
});
