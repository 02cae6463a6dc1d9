// A clock that is off is recognised by the payments that come in, and said once.
import { expect, test } from 'vitest';
import { SIGNED, makeOffer, makeRail, read, type RailKit } from './kit.ts';

const NOW = 1_800_000_000;
const offer = makeOffer();

/** A payment by a client whose clock is `off` seconds ahead of ours, checked at `at`. */
function pay({ rail }: RailKit, off: number, at = NOW): void {
  const authorization = {
    ...SIGNED.authorization,
    validAfter: String(at + off - 600),
    validBefore: String(at + off + 300),
  };
  rail.check(read(rail, offer, { ...SIGNED, authorization }), offer, at * 1000);
}
const said = ({ lines }: RailKit): string[] =>
  lines.filter((line) => line.includes('clock')).map((line) => JSON.parse(line).msg);

test.each([
  ['fast', 'past', -3600],
  ['slow', 'future', 3600],
])('behaviour: a clock that is %s is said once, after ten payments in a row from the %s', (which, side, off) => {
  const kit = makeRail();
  for (let i = 0; i < 9; i++) pay(kit, off);
  expect(said(kit)).toEqual([]);
  for (let i = 0; i < 50; i++) pay(kit, off);
  expect(said(kit)).toEqual([expect.stringMatching(new RegExp(`may be ${which}: .* in the ${side}`))]);
});

test('behaviour: a payment that is on time ends the row, and so does one from the other side', () => {
  const kit = makeRail();
  for (let i = 0; i < 40; i++) pay(kit, i % 9 === 8 ? 0 : -3600);
  for (let i = 0; i < 40; i++) pay(kit, i % 2 === 0 ? 3600 : -3600);
  expect(said(kit)).toEqual([]);
});

test('behaviour: a wrong clock is told of again after an hour, and after it was right in between', () => {
  const kit = makeRail();
  for (let i = 0; i < 20; i++) pay(kit, -3600);
  for (let i = 0; i < 20; i++) pay(kit, -3600, NOW + 3599);
  expect(said(kit).length).toBe(1);
  pay(kit, -3600, NOW + 3600);
  expect(said(kit).length).toBe(2);
  pay(kit, 0, NOW + 3601);
  for (let i = 0; i < 10; i++) pay(kit, -3600, NOW + 3602);
  expect(said(kit).length).toBe(3);
});

test('attack: times that no clock can show do not end the process', () => {
  const kit = makeRail();
  const validBefore = (2n ** 256n - 1n).toString();
  const presented = read(kit.rail, offer, { ...SIGNED, authorization: { ...SIGNED.authorization, validBefore } });
  for (let i = 0; i < 20; i++) kit.rail.check(presented, offer, NOW * 1000);
  expect(said(kit).length).toBe(1);
});
