// Gathers calls: those that come while one call is under way go together in the next one, a bounded number at a time.

type Waiting<C, R> = {
  readonly call: C;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
};

/** Makes single calls of one that takes many; it answers with a result for each, in their order, or rejects for all. */
export function batched<C, R>(
  most: number,
  send: (calls: readonly C[]) => Promise<readonly R[]>,
): (call: C) => Promise<R> {
  const waiting: Waiting<C, R>[] = [];
  let busy = false;
  const work = async (): Promise<void> => {
    busy = true;
    while (waiting.length > 0) {
      const batch = waiting.splice(0, most);
      try {
        const results = await send(batch.map(({ call }) => call));
        if (results.length !== batch.length) throw new Error('a call of many was answered for others than were asked');
        for (const [index, { resolve }] of batch.entries()) resolve(results[index] as R);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    busy = false;
  };
  return (call) =>
    new Promise<R>((resolve, reject) => {
      waiting.push({ call, resolve, reject });
      if (!busy) void work();
    });
}
