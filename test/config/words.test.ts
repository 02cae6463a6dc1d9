// The small readers that the configuration is made of: durations, addresses, suggestions.
import { describe, expect, test } from 'vitest';
import { isNearby, listensClash, parseCidr, parseListen } from '../../src/config/addresses.ts';
import { formatDuration, parseDuration } from '../../src/config/durations.ts';
import { suggest } from '../../src/domain/suggest.ts';

describe('durations', () => {
  test.each([
    ['500ms', 500],
    ['5s', 5000],
    ['15m', 900_000],
    ['24h', 86_400_000],
    ['0s', 0],
    ['300s', 300_000],
  ])('behaviour: %s is %i ms', (text, ms) => expect(parseDuration(text)).toBe(ms));
  test.each(['5', '5 s', '1.5h', '-1s', '5S', '1h30m', '1w', '', 's', '9999999999999s', '5s\n'])(
    'refuses: %j as a duration',
    (text) => expect(parseDuration(text)).toBeUndefined(),
  );
  test.each([
    [0, '0ms'],
    [1500, '1500ms'],
    [90_000, '90s'],
    [86_400_000, '24h'],
  ])('behaviour: %i ms is written %s', (ms, text) => expect(formatDuration(ms)).toBe(text));
});

describe('addresses', () => {
  test.each([
    ['127.0.0.1:8402', '127.0.0.1', 8402],
    ['[::1]:0', '::1', 0],
    ['[::ffff:10.0.0.1]:1', '::ffff:10.0.0.1', 1],
    ['localhost:65535', 'localhost', 65_535],
    ['my-host.internal:80', 'my-host.internal', 80],
  ])('behaviour: %s is a listener', (text, host, port) => expect(parseListen(text)).toEqual({ host, port }));
  test.each([
    '8402',
    ':8402',
    '127.0.0.1',
    '127.0.0.1:',
    '127.0.0.1:65536',
    '::1:80',
    '[127.0.0.1]:80',
    '1.2.3:80',
    'a b:80',
    '-a:80',
    'http://a:80',
    '*:80',
  ])('refuses: %s as a listener', (text) => expect(parseListen(text)).toBeUndefined());
  test.each([
    ['127.0.0.1:80', '127.0.0.1:80', true],
    ['127.0.0.1:80', '127.0.0.1:81', false],
    ['127.0.0.1:0', '127.0.0.1:0', false],
    ['0.0.0.0:80', '127.0.0.1:80', true],
    ['[::]:80', '10.0.0.1:80', true],
    ['10.0.0.1:80', '10.0.0.2:80', false],
    ['localhost:80', '[::1]:80', true],
  ])('behaviour: %s and %s clash: %s', (a, b, clash) => {
    const [left, right] = [parseListen(a), parseListen(b)];
    expect(left && right && listensClash(left, right)).toBe(clash);
    expect(left && right && listensClash(right, left)).toBe(clash);
  });
  test.each(['127.0.0.1', '127.9.9.9', '::1', 'localhost', '10.1.2.3', '172.16.0.1', '192.168.1.1', 'fd00::1'])(
    'behaviour: %s is nearby',
    (host) => expect(isNearby(host)).toBe(true),
  );
  test.each(['8.8.8.8', '172.32.0.1', 'registry', 'localhost.example.com', '2001:db8::1', '', '169.254.169.254'])(
    'behaviour: %s is not nearby',
    (host) => expect(isNearby(host)).toBe(false),
  );
  test.each([
    ['10.0.0.0/8', '10.0.0.0', 8],
    ['10.1.2.3', '10.1.2.3', 32],
    ['fd00::/8', 'fd00::', 8],
    ['::/0', '::', 0],
  ])('behaviour: %s is a network', (text, address, bits) => expect(parseCidr(text)).toEqual({ address, bits }));
  test.each(['10.0.0.0/33', 'fd00::/129', '10.0.0/8', 'a', '10.0.0.0/', '10.0.0.0/-1', 'fe80::1%eth0'])(
    'refuses: %s as a network',
    (text) => expect(parseCidr(text)).toBeUndefined(),
  );
});

describe('suggestions', () => {
  const known = ['upstream', 'upstream_profile', 'listen', 'methods', 'store'];
  test.each([
    ['upstrem', 'upstream'],
    ['upstreamProfile', 'upstream_profile'],
    ['upstream-profile', 'upstream_profile'],
    ['lisetn', 'listen'],
    ['method', 'methods'],
    ['STORE', 'store'],
    ['xyz', undefined],
    ['', undefined],
    ['a'.repeat(100_000), undefined],
  ])('behaviour: %s means %s', (word, meant) => expect(suggest(word, known)).toBe(meant));
});
