// Runs the differential test in rounds: each has a seed, a front and an upstream of its own and eight clients at a time
// that share the front's connections to the upstream.
import { check } from './check.ts';
import { runClient, type Got } from './client.ts';
import type { FrontKind } from './fronts.ts';
import { judge } from './oracle.ts';
import { drawBursts, type Exchange } from './plan.ts';
import { startDrawnUpstream } from './upstream.ts';

export const CLIENTS = 8;
/** Of one round. */
export const EXCHANGES = 100;

export type Round = {
  readonly exchanges: number;
  /** Empty, or what is wrong, with the command that shows it again. */
  readonly faults: readonly string[];
};

export async function runRound(kind: FrontKind, seed: number, exchanges = EXCHANGES): Promise<Round> {
  const upstream = await startDrawnUpstream();
  const front = await kind.start(upstream.url);
  const results = new Map<Exchange, Got>();
  const faults: string[] = [];
  const runOne = async (index: number): Promise<void> => {
    const share = Math.floor(exchanges / CLIENTS) + (index < exchanges % CLIENTS ? 1 : 0);
    const bursts = drawBursts(seed, index, { ...kind.draws, exchanges: share });
    for (const { exchanges: all } of bursts) for (const exchange of all) upstream.add(exchange);
    const { port, target, lines } = front;
    await runClient(bursts, { port, target, lines, onGot: (exchange, got) => void results.set(exchange, got) });
  };
  try {
    const clients = await Promise.allSettled(Array.from({ length: CLIENTS }, (_, index) => runOne(index)));
    for (const client of clients)
      if (client.status === 'rejected')
        faults.push(String(client.reason instanceof Error ? client.reason.message : client.reason));
    for (const [exchange, got] of results) {
      const target = front.target(exchange.token);
      faults.push(
        ...check(exchange, await judge(exchange), got, upstream.seen(exchange.token), { ...front.expected, target }),
      );
    }
    faults.push(...upstream.violations());
  } finally {
    await front.close();
    await upstream.close();
  }
  const again = `node test/lab/differential/main.ts --front ${kind.name} --seed ${seed} --exchanges ${exchanges}`;
  return { exchanges: results.size, faults: faults.map((fault) => `${again}\n  ${fault}`) };
}
