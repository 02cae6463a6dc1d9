// What a scrape costs by the number of series: `node bench/series.ts [ROUTES ...]`. Each route is asked for as clients do: unpaid,
// paid for, and free where it is paused, which is what makes series of it. Prints series, bytes and milliseconds of a scrape, and
// the memory that they take. Shows no traffic beside it.
import { createMetrics } from '../src/host/metrics.ts';

const SCRAPES = 9;
const counts = process.argv.slice(2).map(Number);

for (const routes of counts.length === 0 ? [0, 1000, 10_000] : counts) {
  const before = memory();
  const metrics = createMetrics();
  const requests = metrics.counter('requests_total', 'Requests.', ['outcome', 'code', 'route_id']);
  const payments = metrics.counter('payments_total', 'Payments.', ['route_id', 'result', 'network']);
  const revenue = metrics.counter('revenue_total', 'Revenue.', ['route_id', 'currency', 'network']);
  for (let n = 0; n < routes; n++) {
    const id = `11111111-1111-4111-8111-${n.toString(16).padStart(12, '0')}`;
    requests('payment_required', '402', id)(1);
    requests('paid', '200', id)(1);
    requests('free', '200', id)(1);
    payments(id, 'settled', 'eip155:8453')(1);
    revenue(id, 'USD', 'eip155:8453')(1);
  }
  const times: number[] = [];
  let text = '';
  for (let scrape = 0; scrape < SCRAPES; scrape++) {
    const since = performance.now();
    text = await metrics.text();
    times.push(performance.now() - since);
  }
  const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
  const took = times.toSorted((a, b) => a - b)[SCRAPES >> 1] ?? 0;
  const result = {
    routes,
    series,
    bytes: text.length,
    milliseconds: Math.round(took * 10) / 10,
    held: memory() - before,
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

/** Bytes in use, after a collection where Node was started with --expose-gc. */
function memory(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}
