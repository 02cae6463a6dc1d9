// A list, page by page: each answer names the cursor of the next one, and the last names none.
import { TollgateError, type ClientProblem } from './problem.ts';
import type { Query } from './target.ts';

export type ListPage<A> = A extends { next_cursor: string | null } ? A : never;

type Asked = { readonly data?: unknown; readonly error?: ClientProblem | undefined; readonly response: Response };

export async function* readPages(
  ask: (query: Query) => Promise<Asked>,
  query: Query = {},
): AsyncGenerator<unknown, void, undefined> {
  let cursor: string | undefined;
  do {
    const { data, error, response } = await ask(cursor === undefined ? query : { ...query, cursor });
    if (error !== undefined) throw new TollgateError(error, response);
    yield data;
    cursor = cursorOf(data);
  } while (cursor !== undefined);
}

function cursorOf(page: unknown): string | undefined {
  if (typeof page !== 'object' || page === null) return undefined;
  const { next_cursor: next }: { next_cursor?: unknown } = page;
  return typeof next === 'string' ? next : undefined;
}
