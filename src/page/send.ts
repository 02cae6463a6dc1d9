// Asks the server for this page's own address, with a payment or without, and tells its answers apart. A redirect is never
// followed: the payment would go along. An answer counts when it is there whole: until then the same payment is sent again,
// which is never charged twice.
import { isPassing, LOST, readProblem, type ToldProblem } from './told-problem.ts';
import { readBase64Json } from './required.ts';

/**
 * Price that a 402 asks for. `header` is its PAYMENT-REQUIRED, `reason` one word, `because` a facilitator's word or
 * what was expected.
 */
export type PriceDemand = {
  readonly kind: 'demand';
  readonly header: string | null;
  readonly reason: string;
  readonly because: string;
};
/** Problem after which the same request may be sent again. */
type TemporaryProblem = { readonly kind: 'later'; readonly problem: ToldProblem };
/** A problem of the server's own that asking again does not end. */
type LastingProblem = { readonly kind: 'failed'; readonly problem: ToldProblem };
/** The service answers; the body is still to be read. */
export type AnswerStream = {
  readonly kind: 'answer';
  readonly head: AnswerHead;
  readonly body: ReadableStream<Uint8Array> | null;
};
export type AnswerHead = {
  readonly status: number;
  readonly type: string;
  /** File name of a saved answer. */
  readonly name: string;
  /** Transaction of the receipt; undefined if no receipt came along. */
  readonly transaction: string | undefined;
};
/** A redirect that the server did not name: where it leads no page can know. */
type OpaqueRedirect = { readonly kind: 'elsewhere' };
/** The page costs nothing for the moment. */
type FreePage = { readonly kind: 'free' };

export async function sendPayment(
  header: string,
): Promise<PriceDemand | TemporaryProblem | LastingProblem | AnswerStream | OpaqueRedirect> {
  try {
    const response = await ask({ 'PAYMENT-SIGNATURE': header, 'Tollgate-Page': '1' });
    if (response.type === 'opaqueredirect') return { kind: 'elsewhere' };
    const transaction = transactionOf(response);
    const told = await readOwn(response, transaction);
    if (told !== undefined) return told;
    const { status, headers, body } = response;
    const head = { status, transaction, name: nameOf(response), type: headers.get('content-type') ?? '' };
    return { kind: 'answer', head, body };
  } catch {
    return { kind: 'later', problem: LOST };
  }
}

/** Asks for the current price. `serverMs` is the server's time at the answer. */
export async function askPrice(): Promise<{
  readonly told: PriceDemand | TemporaryProblem | LastingProblem | FreePage;
  readonly serverMs: number;
}> {
  try {
    const response = await ask({ Accept: 'application/json' });
    const told = await readOwn(response, undefined);
    if (told === undefined) await response.body?.cancel();
    const date = Date.parse(response.headers.get('date') ?? '');
    return { told: told ?? { kind: 'free' }, serverMs: Number.isNaN(date) ? Date.now() : date };
  } catch {
    return { told: { kind: 'later', problem: LOST }, serverMs: Date.now() };
  }
}

function ask(headers: Readonly<Record<string, string>>): Promise<Response> {
  return fetch(address(), { headers, cache: 'no-store', redirect: 'manual' });
}

/** Address of this page without the part behind `#`, which no server is told. */
export function address(): string {
  return location.href.replace(/#.*$/s, '');
}

/** An answer of the paywall; undefined: it is the service's. */
async function readOwn(
  response: Response,
  transaction: string | undefined,
): Promise<PriceDemand | TemporaryProblem | LastingProblem | undefined> {
  const { status, headers } = response;
  const header = headers.get('payment-required');
  if (status === 402 && header !== null) {
    await response.body?.cancel();
    const [reason = '', said = ''] = (headers.get('tollgate-reason') ?? '').split(/: */, 2);
    const receipt = (readBase64Json(headers.get('payment-response')) ?? {}) as { readonly errorReason?: unknown };
    const because = typeof receipt.errorReason === 'string' ? receipt.errorReason : said;
    return { kind: 'demand', header, reason, because };
  }
  const problem = await readProblem(response, transaction);
  return problem && { kind: isPassing(problem) ? 'later' : 'failed', problem };
}

function transactionOf({ headers }: Response): string | undefined {
  const receipt = readBase64Json(headers.get('payment-response')) as
    | { readonly success?: unknown; readonly transaction?: unknown }
    | undefined;
  return receipt?.success === true && typeof receipt.transaction === 'string' ? receipt.transaction : undefined;
}

function nameOf({ headers, url }: Response): string {
  const [, written] = /filename="?([^";]+)/i.exec(headers.get('content-disposition') ?? '') ?? [];
  const name = written ?? new URL(url).pathname.split('/').pop() ?? '';
  return name.replace(/[^\w.() -]/g, '_').slice(-100) || 'answer';
}
