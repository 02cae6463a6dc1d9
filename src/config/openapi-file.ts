// Reads the OpenAPI document that `discovery.openapi` names, in a thread of its own: a hostile one ends that thread,
// and a large one holds up no request. A fault in it is a remark, never an error.
import { Worker } from 'node:worker_threads';
import type { OpenApi, Remark } from '../domain/discovery/openapi.ts';
import { codeOf } from './secret-files.ts';

/** Enough for an ordinary document of 2 MiB. */
const MEMORY_MB = 256;
/** Time for the file: only `tollgate check` waits for it. */
const TIME_MS = 120_000;
const OUT_OF_MEMORY = 'ERR_WORKER_OUT_OF_MEMORY';

type ReadOptions = {
  readonly timeMs?: number;
  /** Gives up reading. */
  readonly signal?: AbortSignal | undefined;
};

/** A Remark: nothing of it can be used. `file` is absolute. */
export function readOpenApiFile(
  file: string,
  { timeMs = TIME_MS, signal }: ReadOptions = {},
): Promise<OpenApi | Remark> {
  const script = new URL(`./openapi-worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
  const { promise, resolve } = Promise.withResolvers<OpenApi | Remark>();
  const unusable = (why: string): void => resolve({ line: 1, message: `${why}; it is not used` });
  const worker = new Worker(script, {
    workerData: file,
    env: {},
    execArgv: [],
    name: 'openapi',
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  });
  const timer = setTimeout(() => unusable(`takes longer than ${timeMs / 1000} seconds to read`), timeMs);
  const giveUp = (): void => unusable('was not read to its end');
  signal?.addEventListener('abort', giveUp, { once: true });
  worker.once('message', resolve);
  worker.once('error', (error) => {
    const code = codeOf(error);
    unusable(`cannot be read ${code === OUT_OF_MEMORY ? `within ${MEMORY_MB} MiB of memory` : `(${code})`}`);
  });
  worker.once('exit', () => unusable('cannot be read'));
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', giveUp);
    void worker.terminate();
  });
}
