// Who is shown the page for people: the navigation of a browser and nothing else.
import { describe, expect, test } from 'vitest';
import { asksForPage } from '../../src/gateway/negotiation.ts';

const ACCEPT = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';
const FETCHED = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-site': 'none' };
const AGENT = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

const browser = (headers: Record<string, string>, method = 'GET') => ({ method, headers });

describe('the page is shown to', () => {
  test.each([
    ['a navigation', browser({ accept: ACCEPT, ...FETCHED })],
    ['one without User-Agent', browser({ accept: 'text/html', ...FETCHED })],
    ['a browser that names no Sec-Fetch', browser({ accept: ACCEPT, 'user-agent': AGENT })],
    ['XHTML', browser({ accept: 'application/xhtml+xml', ...FETCHED })],
    ['HTML in capitals', browser({ accept: 'Text/HTML', ...FETCHED })],
    ['HTML as much as JSON', browser({ accept: 'application/json;q=0.5, text/html;q=0.5', ...FETCHED })],
    ['HTML before anything', browser({ accept: '*/*;q=0.1,text/html;q=0.2', ...FETCHED })],
    ['JSON refused', browser({ accept: 'text/html;q=0.1,*/*;q=0.9,application/json;q=0', ...FETCHED })],
    ['spaces around weights', browser({ accept: 'text/html ; level=1 ; q=0.7', ...FETCHED })],
  ])('behaviour: the page answers this request: %s', (_name, request) => {
    expect(asksForPage(request)).toBe(true);
  });
});

describe('everybody else gets JSON', () => {
  test.each([
    ['no Accept', browser({ ...FETCHED, 'user-agent': AGENT })],
    ['curl', browser({ accept: '*/*', 'user-agent': 'curl/8' })],
    ['curl that wants HTML', browser({ accept: 'text/html', 'user-agent': 'curl/8' })],
    [
      'a script in a page',
      browser({ accept: ACCEPT, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty', 'user-agent': AGENT }),
    ],
    [
      'an image',
      browser({ accept: ACCEPT, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image', 'user-agent': AGENT }),
    ],
    [
      'a frame',
      browser({ accept: ACCEPT, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe', 'user-agent': AGENT }),
    ],
    ['a browser with one Sec-Fetch alone', browser({ accept: ACCEPT, 'sec-fetch-site': 'none', 'user-agent': AGENT })],
    ['anything at all', browser({ accept: '*/*', ...FETCHED })],
    ['HTML less than JSON', browser({ accept: 'text/html;q=0.8,application/json', ...FETCHED })],
    ['HTML less than all', browser({ accept: 'text/html;q=0.8,*/*;q=0.9', ...FETCHED })],
    ['HTML refused', browser({ accept: 'text/html;q=0,*/*;q=0', ...FETCHED })],
    ['a weight that is none', browser({ accept: 'text/html;q=high', ...FETCHED })],
    ['HEAD', browser({ accept: ACCEPT, ...FETCHED }, 'HEAD')],
    ['a form', browser({ accept: ACCEPT, ...FETCHED }, 'POST')],
  ])('behaviour: JSON answers this request: %s', (_name, request) => {
    expect(asksForPage(request)).toBe(false);
  });
});
