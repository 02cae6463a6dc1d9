// A chart over time: stacked columns, or lines with an area under the first. Drawn by hand as SVG in real pixels, coloured by the
// tokens. The pointer, or the arrow keys, read one moment; the same figures stand in a table behind a toggle.
import { useSignal } from '@preact/signals';
import { useDesk } from '../desk-context.ts';
import { useWidth } from './chart-size.ts';
import { areaPath, labelIndexes, linePath, pointsOf, round, valueTicks } from './scale.ts';

export type ChartSeries = {
  readonly name: string;
  /** 1 to 5: its colour. */
  readonly tone: number;
  readonly values: readonly number[];
};

type TimeChartProps = {
  readonly title: string;
  readonly kind: 'columns' | 'lines';
  readonly times: readonly string[];
  readonly series: readonly ChartSeries[];
  readonly step: 'minute' | 'hour' | 'day';
  readonly height?: number;
  readonly axis: (value: number) => string;
  readonly exact: (value: number, index: number, series: ChartSeries) => string;
  /** Points from here on may still grow. */
  readonly completeUntil?: string | null;
};

const AXIS_LEFT = 46;
const TOP = 12;
const BOTTOM = 26;

export function TimeChart(props: TimeChartProps) {
  const isTable = useSignal(false);
  return (
    <div class="chart">
      <div class="chart-foot">
        <Legend series={props.series} />
        <button
          type="button"
          class="button quiet small"
          aria-pressed={isTable.value}
          onClick={() => (isTable.value = !isTable.value)}
        >
          {isTable.value ? 'Chart' : 'Table'}
        </button>
      </div>
      {isTable.value ? <ChartTable {...props} /> : <Drawing {...props} />}
    </div>
  );
}

function Legend({ series }: { readonly series: readonly ChartSeries[] }) {
  return (
    <ul class="legend">
      {series.map(({ name, tone }) => (
        <li key={name}>
          <i class={`swatch tone-${tone}`} aria-hidden="true" />
          {name}
        </li>
      ))}
    </ul>
  );
}

function Drawing(props: TimeChartProps) {
  const { title, kind, times, series, height = 248, axis } = props;
  const { element, width } = useWidth<HTMLDivElement>();
  const at = useSignal<number | null>(null);
  const count = times.length;
  const highest = Math.max(
    0,
    ...(kind === 'columns' ? totalsOf(series, count) : series.flatMap(({ values }) => values)),
  );
  const ticks = valueTicks(highest);
  const top = ticks.at(-1) ?? 1;
  const box = { left: AXIS_LEFT, width: width - AXIS_LEFT - 4, bottom: height - BOTTOM, height: height - BOTTOM - TOP };
  const slot = box.width / Math.max(1, count);
  const indexAt = (x: number): number => Math.max(0, Math.min(count - 1, Math.floor((x - box.left) / slot)));
  const xAt = (index: number): number => box.left + slot * (index + 0.5);
  const move = (by: number): void => {
    at.value = Math.max(0, Math.min(count - 1, (at.value ?? (by > 0 ? -1 : count)) + by));
  };
  return (
    <div
      ref={element}
      class="drawing"
      tabIndex={0}
      role="group"
      aria-label={`${title}. Arrow keys read single moments; the table has all of them.`}
      onPointerMove={(event) => {
        at.value = indexAt(event.clientX - event.currentTarget.getBoundingClientRect().left);
      }}
      onPointerLeave={() => (at.value = null)}
      onBlur={() => (at.value = null)}
      onKeyDown={(event) => {
        if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
        event.preventDefault();
        move(event.key === 'ArrowRight' ? 1 : -1);
      }}
    >
      {width > 0 && count > 0 && (
        <svg width={width} height={height} role="img" aria-label={title} focusable="false">
          {ticks.map((tick) => {
            const y = round(box.bottom - (tick / top) * box.height);
            return (
              <g key={tick} class="tick">
                <line x1={box.left} x2={box.left + box.width} y1={y} y2={y} />
                <text x={box.left - 10} y={y + 4} text-anchor="end">
                  {axis(tick)}
                </text>
              </g>
            );
          })}
          <TimeLabels {...props} xAt={xAt} width={box.width} y={height - 6} />
          {at.value !== null && kind === 'columns' && (
            <rect class="slot" x={box.left + slot * at.value} y={TOP} width={slot} height={box.height} />
          )}
          {kind === 'columns' ? (
            <Columns series={series} count={count} slot={slot} box={box} top={top} />
          ) : (
            <Lines series={series} box={{ ...box, left: xAt(0), width: slot * (count - 1) }} top={top} />
          )}
          {at.value !== null && kind === 'lines' && (
            <line class="cursor" x1={xAt(at.value)} x2={xAt(at.value)} y1={TOP} y2={box.bottom} />
          )}
        </svg>
      )}
      {at.value !== null && count > 0 && <Tip {...props} index={at.value} x={xAt(at.value)} width={width} />}
    </div>
  );
}

type Box = { readonly left: number; readonly width: number; readonly bottom: number; readonly height: number };

type ColumnsProps = {
  readonly series: readonly ChartSeries[];
  readonly count: number;
  readonly slot: number;
  readonly box: Box;
  readonly top: number;
};

/** One path a series: a thousand columns are no thousand elements. */
function Columns({ series, count, slot, box, top }: ColumnsProps) {
  const gap = slot > 6 ? Math.min(6, slot * 0.28) : slot > 3 ? 1 : 0;
  const base = Array.from({ length: count }, () => 0);
  return (
    <>
      {series.map(({ name, tone, values }) => {
        const parts = values.map((value, index) => {
          if (!(value > 0)) return '';
          const from = base[index] ?? 0;
          base[index] = from + value;
          const y = round(box.bottom - ((from + value) / top) * box.height);
          const bottom = round(box.bottom - (from / top) * box.height);
          const x = round(box.left + slot * index + gap / 2);
          const width = Math.max(0.8, slot - gap);
          // A column by itself has soft shoulders; stacked ones fit together.
          const soft = series.length === 1 ? round(Math.min(3, width / 3, bottom - y)) : 0;
          const head =
            soft > 0
              ? `V${y + soft}q0 ${-soft} ${soft} ${-soft}h${round(width - 2 * soft)}q${soft} 0 ${soft} ${soft}`
              : `V${y}h${round(width)}`;
          return `M${x} ${bottom}${head}V${bottom}Z`;
        });
        return <path key={name} class={`column tone-${tone}`} d={parts.join('')} />;
      })}
    </>
  );
}

function Lines({
  series,
  box,
  top,
}: {
  readonly series: readonly ChartSeries[];
  readonly box: Box;
  readonly top: number;
}) {
  return (
    <>
      {series.map(({ name, tone, values }, index) => {
        const points = pointsOf(values, box, top);
        return (
          <g key={name} class={`tone-${tone}`}>
            {index === 0 && <path class="area" d={areaPath(points, box.bottom)} />}
            <path class="line" d={linePath(points)} />
          </g>
        );
      })}
    </>
  );
}

type TimeLabelsProps = TimeChartProps & {
  readonly xAt: (index: number) => number;
  readonly width: number;
  readonly y: number;
};

function TimeLabels({ times, step, xAt, width, y }: TimeLabelsProps) {
  const words = useTimeLabel(step);
  return (
    <g class="tick">
      {labelIndexes(times.length, Math.max(2, Math.floor(width / 84))).map((index) => (
        <text key={index} x={round(xAt(index))} y={y} text-anchor="middle">
          {words(times[index] ?? '', times)}
        </text>
      ))}
    </g>
  );
}

function Tip({
  times,
  series,
  exact,
  index,
  x,
  width,
  completeUntil,
}: TimeChartProps & { index: number; x: number; width: number }) {
  const { times: words, now } = useDesk();
  const time = times[index] ?? '';
  const isOpen = completeUntil ? Date.parse(time) >= Date.parse(completeUntil) : false;
  const side = x > width / 2 ? { right: `${width - x + 12}px` } : { left: `${x + 12}px` };
  return (
    <div class="tip" style={side} role="status">
      <strong>{words.moment(Date.parse(time), now())}</strong>
      {series.map((each) => (
        <span key={each.name}>
          <i class={`swatch tone-${each.tone}`} aria-hidden="true" />
          {each.name}
          <b>{exact(each.values[index] ?? 0, index, each)}</b>
        </span>
      ))}
      {isOpen && <em>still being counted</em>}
    </div>
  );
}

function ChartTable({ title, times, series, exact }: TimeChartProps) {
  const { times: words, now } = useDesk();
  return (
    <div class="chart-table" tabIndex={0} role="region" aria-label={`${title}, as a table`}>
      <table>
        <thead>
          <tr>
            <th scope="col">From</th>
            {series.map(({ name }) => (
              <th key={name} scope="col" class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((time, index) => (
            <tr key={time}>
              <th scope="row">{words.moment(Date.parse(time), now())}</th>
              {series.map((each) => (
                <td key={each.name} class="number">
                  {exact(each.values[index] ?? 0, index, each)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Hours within two days, days beyond. */
function useTimeLabel(step: TimeChartProps['step']): (time: string, times: readonly string[]) => string {
  const { times: words } = useDesk();
  return (time, times) => {
    const span = Date.parse(times.at(-1) ?? '') - Date.parse(times[0] ?? '');
    const at = Date.parse(time);
    return step === 'day' || span > 2 * 86_400_000 ? words.day(at) : words.clock(at).slice(0, 5);
  };
}

function totalsOf(series: readonly ChartSeries[], count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0));
}
