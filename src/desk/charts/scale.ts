// The scales of a chart: round steps of an axis, and values as pixels. Pure, so that what a chart draws is tested without a
// browser.

/** Round values from 0 to at least `highest`, at most `most` steps apart. */
export function valueTicks(highest: number, most = 4): readonly number[] {
  if (!(highest > 0)) return [0, 1];
  const rough = highest / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5].find((each) => each * power >= rough * 0.999_999) ?? 10) * power;
  const count = Math.ceil((highest / step) * 0.999_999);
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}

/** Indexes of points that get a label: the same distance apart, no more than `most`. */
export function labelIndexes(count: number, most: number): readonly number[] {
  if (count <= 0 || most <= 0) return [];
  const step = Math.max(1, Math.ceil(count / most));
  const start = Math.floor(((count - 1) % step) / 2);
  return Array.from({ length: Math.ceil((count - start) / step) }, (_, index) => start + index * step);
}

type Point = readonly [x: number, y: number];

/** Points of `values` in a box whose lower left corner is (left, bottom). */
export function pointsOf(
  values: readonly number[],
  box: { readonly left: number; readonly width: number; readonly bottom: number; readonly height: number },
  highest: number,
): readonly Point[] {
  const last = Math.max(1, values.length - 1);
  return values.map((value, index) => [
    round(box.left + (box.width * index) / last),
    round(box.bottom - (highest > 0 ? (value / highest) * box.height : 0)),
  ]);
}

export function linePath(points: readonly Point[]): string {
  return points.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${x} ${y}`).join('');
}

/** The area between the points and `bottom`. */
export function areaPath(points: readonly Point[], bottom: number): string {
  const [first, last] = [points[0], points.at(-1)];
  return first === undefined || last === undefined
    ? ''
    : `${linePath(points)}L${last[0]} ${round(bottom)}L${first[0]} ${round(bottom)}Z`;
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
