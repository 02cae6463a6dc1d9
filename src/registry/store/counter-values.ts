// Results of changes of counters as a column of a store, the same for every kind of store.
import { COUNTER_RESULTS, type CounterResult } from '../../domain/selling/counter.ts';

export function writeResult(result: CounterResult): string {
  return result.kind === 'counted' ? `counted ${result.used}` : result.kind;
}

export function readResult(written: string): CounterResult {
  const [word = '', used = ''] = written.split(' ');
  const kind = COUNTER_RESULTS.find((each) => each === word);
  if (kind === undefined) throw new TypeError(`the store holds a counter's result ${written}`);
  return kind === 'counted' ? { kind, used: Number(used) } : { kind };
}
