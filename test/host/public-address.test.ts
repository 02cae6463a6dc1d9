// Which addresses are public: of each kind that is not, the first and the last one, and the neighbours that are; also inside IPv6.
import { expect, test } from 'vitest';
import { isPublicAddress } from '../../src/host/public-address.ts';

const PUBLIC_IPV4 = [
  ...[
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
  ],
  ...[
    '169.253.255.255',
    '169.255.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
  ],
  ...['198.20.0.0', '223.255.255.255'],
];
const OTHER_IPV4 = [
  ...[
    '0.0.0.0',
    '0.255.255.255',
    '10.0.0.0',
    '10.255.255.255',
    '100.64.0.0',
    '100.127.255.255',
    '127.0.0.1',
    '127.255.255.255',
  ],
  ...['169.254.0.1', '169.254.169.254', '172.16.0.0', '172.31.255.255', '192.0.0.1', '192.0.2.1', '192.88.99.1'],
  ...['192.168.0.0', '192.168.255.255', '198.18.0.0', '198.19.255.255', '198.51.100.1', '203.0.113.1', '224.0.0.1'],
  ...['239.255.255.255', '240.0.0.1', '255.255.255.255'],
];
const PUBLIC_IPV6 = [
  '2606:4700:4700::1111',
  '2a00:1450:4001:82a::200e',
  '2400:cb00::1',
  '2001:4860:4860::8888',
  '2620:fe::fe',
];
const OTHER_IPV6 = [
  ...['::', '::1', 'fe80::1', 'fe80::1%eth0', 'febf::1', 'fec0::1', 'fc00::1', 'fdff:ffff::1', 'ff02::1', 'ff0e::1'],
  ...[
    '2001:db8::1',
    '2001::1',
    '2001:0:4136:e378:8000:63bf:3fff:fdd2',
    '2001:2::1',
    '2001:20::1',
    '3fff::1',
    '3fff:fff::1',
  ],
  ...['64:ff9b:1::8.8.8.8', '100::1', '5f00::1', '4000::1', '1fff::1'],
];
/** Every way in which an IPv4 address stands in an IPv6 one. */
const WAYS: readonly (readonly [string, (ipv4: string) => string])[] = [
  ['mapped', (ipv4) => `::ffff:${ipv4}`],
  ['mapped, in hexadecimal', (ipv4) => `::ffff:${hexOf(ipv4)}`],
  ['mapped, written out', (ipv4) => `0:0:0:0:0:ffff:${hexOf(ipv4)}`],
  ['translated (SIIT)', (ipv4) => `::ffff:0:${ipv4}`],
  ['NAT64', (ipv4) => `64:ff9b::${ipv4}`],
  ['6to4', (ipv4) => `2002:${hexOf(ipv4)}::1`],
  ['ISATAP in a public network', (ipv4) => `2606:4700::5efe:${ipv4}`],
  ['ISATAP, the other bit', (ipv4) => `2606:4700::200:5efe:${ipv4}`],
];

function hexOf(ipv4: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number);
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}

test.each([...PUBLIC_IPV4, ...PUBLIC_IPV6])('behaviour: %s is a public address', (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

test.each([...OTHER_IPV4, ...OTHER_IPV6, '', 'example.com', '1.2.3', '2130706433', '0x7f.1', '[::1]'])(
  'attack: "%s" is no public address',
  (address) => {
    expect(isPublicAddress(address)).toBe(false);
  },
);

test.each(WAYS)('attack: an IPv4 address that is %s in IPv6 is as public as by itself', (_way, write) => {
  const judged = (all: readonly string[]): readonly string[] => all.map(write).filter(isPublicAddress);
  expect(judged(OTHER_IPV4)).toEqual([]);
  expect(judged(PUBLIC_IPV4)).toEqual(PUBLIC_IPV4.map(write));
});

test('attack: IPv4-compatible addresses are public for no IPv4 address', () => {
  expect([...PUBLIC_IPV4, ...OTHER_IPV4].map((ipv4) => `::${ipv4}`).filter(isPublicAddress)).toEqual([]);
});
