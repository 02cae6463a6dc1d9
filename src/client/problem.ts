// Problems as a client meets them (RFC 9457): the registry's own, and the answers of whatever stands before it, which may be a
// page of a gateway.
import type { Schemas } from './schema.ts';

/** `code` is one of the document's, or `unknown` if the answer was no problem of a registry's. */
export type ClientProblem = Omit<Schemas['Problem'], 'code'> & {
  readonly code: Schemas['Problem']['code'] | 'unknown';
};

/** Thrown by the iterators, which have no outcome to put a problem into. */
export class TollgateError extends Error {
  override readonly name = 'TollgateError';
  readonly problem: ClientProblem;
  readonly response: Response;

  constructor(problem: ClientProblem, response: Response) {
    super(problem.detail);
    this.problem = problem;
    this.response = response;
  }
}

export async function problemOf(response: Response): Promise<ClientProblem> {
  const { status } = response;
  const read: unknown = await response.json().catch(() => undefined);
  if (isProblem(read)) return read;
  const detail = `The answer was ${status}, and no problem of a registry.`;
  return { type: 'about:blank', title: response.statusText || 'Unknown', status, detail, code: 'unknown' };
}

function isProblem(value: unknown): value is ClientProblem {
  if (typeof value !== 'object' || value === null) return false;
  const { code, detail }: { code?: unknown; detail?: unknown } = value;
  return typeof code === 'string' && typeof detail === 'string';
}
