// A problem of the server's own under a payment, and what it says about the money: whether it was taken, until when the very
// same request brings the answer, and whether the answer is owed.

/** Problem as the server told it. `code` is `lost` if no whole answer arrived. */
export type ToldProblem = {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** Seconds until the same request may bring something else; undefined: nothing was said. */
  readonly seconds?: number | undefined;
  /** Whether money was taken; undefined if the server did not say. */
  readonly charged?: boolean | 'unknown' | undefined;
  readonly charge?: string | undefined;
  /** Time, in milliseconds, until which the same request brings the answer without another charge. */
  readonly until?: number | undefined;
  /** The answer cannot be had any more: the money is owed back. */
  readonly owed?: boolean;
  /** Address of the owner's help: mailto, http or https. */
  readonly support?: string | undefined;
  /** Transaction of the receipt; undefined: no receipt came along. */
  readonly transaction?: string | undefined;
};

export const LOST: ToldProblem = { status: 0, code: 'lost', detail: '' };

/** Whether the same payment may be sent again for an answer. */
export function isPassing({ code, status, charged, owed = false }: ToldProblem): boolean {
  if (owed || code === 'already_paid') return false;
  return charged === true || code === 'payment_in_use' || status >= 500 || status === 429 || status === 408;
}

type Body = {
  readonly type?: unknown;
  readonly code?: unknown;
  readonly detail?: unknown;
  readonly charged?: unknown;
  readonly charge_id?: unknown;
  readonly retry_until?: unknown;
  readonly owed?: unknown;
  readonly support?: unknown;
};

/** Reads a problem of the server's own; undefined if the response is the service's. */
export async function readProblem(
  response: Response,
  transaction: string | undefined,
): Promise<ToldProblem | undefined> {
  const { status, headers } = response;
  if (headers.get('content-type') !== 'application/problem+json') return undefined;
  const body = (await response
    .clone()
    .json()
    .catch(() => undefined)) as Body | undefined;
  const { type, code, detail, charged, charge_id: charge, retry_until: until, owed, support } = body ?? {};
  if (typeof code !== 'string' || type !== `/problems/${code}` || typeof detail !== 'string') return undefined;
  const untilMs = typeof until === 'string' ? Date.parse(until) : NaN;
  return {
    ...{ status, code, detail, transaction, seconds: secondsOf(headers.get('retry-after')), owed: owed === true },
    charged: charged === true || charged === false || charged === 'unknown' ? charged : undefined,
    charge: typeof charge === 'string' ? charge : undefined,
    until: Number.isNaN(untilMs) ? undefined : untilMs,
    support: typeof support === 'string' && /^(?:mailto:|https?:\/\/)/i.test(support) ? support : undefined,
  };
}

function secondsOf(text: string | null): number | undefined {
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) : undefined;
}
