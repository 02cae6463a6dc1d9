// A line without axes beside a figure: its shape over the range. It says nothing that the figure's chart and table do not say, so
// a screen reader passes it.
import { areaPath, linePath, pointsOf } from './scale.ts';

const WIDTH = 132;
const HEIGHT = 36;

export function Sparkline({ values, tone = 1 }: { readonly values: readonly number[]; readonly tone?: number }) {
  if (values.length < 2) return null;
  const box = { left: 1, width: WIDTH - 2, bottom: HEIGHT - 2, height: HEIGHT - 5 };
  const points = pointsOf(values, box, Math.max(...values));
  return (
    <svg class={`sparkline tone-${tone}`} width={WIDTH} height={HEIGHT} aria-hidden="true" focusable="false">
      <path class="fill" d={areaPath(points, HEIGHT - 1)} />
      <path class="line" d={linePath(points)} />
    </svg>
  );
}
