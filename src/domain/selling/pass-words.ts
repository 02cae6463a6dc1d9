// What a pass gives, in words for people: on the page where they pay, and in the text that programs read.
import type { PassMeasure } from './pass.ts';

/** Units of time, the longest first: a span is told in the first that it is whole in. */
const SPANS = [
  { seconds: 86_400, name: 'day' },
  { seconds: 3600, name: 'hour' },
  { seconds: 60, name: 'minute' },
] as const;

/** Words that follow a price and "for". */
export function passGives(measure: PassMeasure, currency: string): string {
  switch (measure.kind) {
    case 'seconds':
      return spanOf(measure.seconds);
    case 'uses':
      return counted(measure.uses, 'request');
    case 'credit':
      return `requests worth ${measure.credit} ${currency}`;
    default:
      return measure satisfies never;
  }
}

function spanOf(seconds: number): string {
  const unit = SPANS.find((each) => seconds % each.seconds === 0);
  return unit === undefined ? counted(seconds, 'second') : counted(seconds / unit.seconds, unit.name);
}

function counted(count: number, name: string): string {
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}
