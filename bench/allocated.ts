// Loaded into a server before its program (`node --import`): on SIGUSR2 it prints how many bytes V8 has allocated in the
// server's main thread so far. With ALLOCATED_WHERE set, the second signal also prints which functions allocated them
// since the first, as V8 sampled it.
import { Session, type HeapProfiler } from 'node:inspector';
import { getHeapStatistics } from 'node:v8';
import { isMainThread } from 'node:worker_threads';

export type Allocated = { readonly msg: 'allocated'; readonly bytes: number; readonly where: readonly Where[] };
export type Where = { readonly name: string; readonly bytes: number };

const INTERVAL = 8192;

if (isMainThread) process.on('SIGUSR2', tell);

let session: Session | undefined;

function tell(): void {
  const { total_allocated_bytes: bytes } = getHeapStatistics();
  let where: Where[] = [];
  if (session !== undefined) {
    session.post('HeapProfiler.stopSampling', (_, { profile }) => {
      where = sum(profile);
    });
    session = undefined;
  } else if (process.env['ALLOCATED_WHERE'] !== undefined) {
    session = new Session();
    session.connect();
    session.post('HeapProfiler.startSampling', {
      samplingInterval: INTERVAL,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    });
  }
  process.stdout.write(`${JSON.stringify({ msg: 'allocated', bytes, where } satisfies Allocated)}\n`);
}

function sum({ head }: HeapProfiler.SamplingHeapProfile): Where[] {
  const names = new Map<string, number>();
  const walk = ({ callFrame, selfSize, children }: HeapProfiler.SamplingHeapProfileNode): void => {
    const { functionName, url, lineNumber } = callFrame;
    const name = `${functionName || '(anonymous)'} ${url.replace(/^.*\//, '')}:${lineNumber + 1}`;
    names.set(name, (names.get(name) ?? 0) + selfSize);
    children.forEach(walk);
  };
  walk(head);
  return [...names].map(([name, bytes]) => ({ name, bytes })).toSorted((a, b) => b.bytes - a.bytes);
}
