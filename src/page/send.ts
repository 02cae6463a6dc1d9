// Asks the server for this page's own address, with a payment or without, and tells its answers apart. An answer counts when
// it is there whole: until then the same payment is sent again, which is never charged twice.
import { readBase64Json } from './required.ts';

/** `header`: the PAYMENT-REQUIRED of a 402. `reason`: one word. `because`: a facilitator's word, or what was expected. */
export type PriceTold = {
  readonly kind: 'demand';
  readonly header: string | null;
  readonly reason: string;
  readonly because: string;
};
/** The same request may be sent again. `seconds`: after so many, if that was said. */
export type Later = {
  readonly kind: 'later';
  readonly code: string;
  readonly detail: string;
  readonly seconds: number | undefined;
};
export type Whole = {
  readonly kind: 'answer';
  readonly status: number;
  readonly type: string;
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Of the network; undefined: no receipt came along. */
  readonly transaction: string | undefined;
};
/** A problem of the server's own that asking again does not end. */
export type Failed = {
  readonly kind: 'failed';
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly transaction: string | undefined;
};

/** The page costs nothing for the moment. */
export type Free = { readonly kind: 'free' };

const LATER: ReadonlySet<string> = new Set([
  ...['payment_in_use', 'too_many_unsettled', 'too_many_payments', 'too_many_challenges', 'facilitator_unavailable'],
  ...['settlement_unknown', 'ledger_unavailable', 'routes_absent', 'too_many_requests_in_flight', 'receiver_unknown'],
  ...['price_unpayable', 'upstream_unreachable', 'upstream_timeout', 'request_timeout', 'internal'],
]);
const LOST: Later = { kind: 'later', code: 'lost', detail: '', seconds: undefined };

/** `received`: told how many bytes of an answer are there. */
export async function sendPayment(
  header: string,
  received: (bytes: number) => void,
): Promise<PriceTold | Later | Whole | Failed> {
  try {
    const response = await fetch(address(), { headers: { 'PAYMENT-SIGNATURE': header }, cache: 'no-store' });
    const transaction = transactionOf(response);
    const told = await readOwn(response, transaction);
    if (told !== undefined) return told;
    return {
      ...{ kind: 'answer', status: response.status, transaction, name: nameOf(response) },
      type: response.headers.get('content-type') ?? '',
      bytes: await readWhole(response, received),
    };
  } catch {
    return LOST;
  }
}

/** What it costs now. `serverMs`: the server's time then. */
export async function askPrice(): Promise<{
  readonly told: PriceTold | Later | Failed | Free;
  readonly serverMs: number;
}> {
  try {
    const response = await fetch(address(), { headers: { Accept: 'application/json' }, cache: 'no-store' });
    const told = await readOwn(response, undefined);
    if (told === undefined) await response.body?.cancel();
    const date = Date.parse(response.headers.get('date') ?? '');
    return { told: told ?? { kind: 'free' }, serverMs: Number.isNaN(date) ? Date.now() : date };
  } catch {
    return { told: LOST, serverMs: Date.now() };
  }
}

/** Without the part behind `#`, which no server is told. */
export function address(): string {
  return location.href.replace(/#.*$/s, '');
}

/** An answer of the paywall; undefined: it is the service's. */
async function readOwn(
  response: Response,
  transaction: string | undefined,
): Promise<PriceTold | Later | Failed | undefined> {
  const { status, headers } = response;
  const header = headers.get('payment-required');
  if (status === 402 && header !== null) {
    await response.body?.cancel();
    const [reason = '', said = ''] = (headers.get('tollgate-reason') ?? '').split(/: */, 2);
    const receipt = (readBase64Json(headers.get('payment-response')) ?? {}) as { readonly errorReason?: unknown };
    return {
      kind: 'demand',
      header,
      reason,
      because: typeof receipt.errorReason === 'string' ? receipt.errorReason : said,
    };
  }
  if (headers.get('content-type') !== 'application/problem+json') return undefined;
  const problem = (await response
    .clone()
    .json()
    .catch(() => undefined)) as Problem | undefined;
  const { type, code, detail } = problem ?? {};
  if (typeof code !== 'string' || type !== `/problems/${code}` || typeof detail !== 'string') return undefined;
  if (LATER.has(code)) return { kind: 'later', code, detail, seconds: secondsOf(headers.get('retry-after')) };
  return { kind: 'failed', status, code, detail, transaction };
}

type Problem = { readonly type?: unknown; readonly code?: unknown; readonly detail?: unknown };

function secondsOf(text: string | null): number | undefined {
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) : undefined;
}

function transactionOf({ headers }: Response): string | undefined {
  const receipt = readBase64Json(headers.get('payment-response')) as
    | { readonly success?: unknown; readonly transaction?: unknown }
    | undefined;
  return receipt?.success === true && typeof receipt.transaction === 'string' ? receipt.transaction : undefined;
}

async function readWhole({ body }: Response, received: (bytes: number) => void): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = body?.getReader();
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done || value === undefined) break;
    parts.push(value);
    received((size += value.length));
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The file name of a saved answer. */
function nameOf({ headers, url }: Response): string {
  const [, written] = /filename="?([^";]+)/i.exec(headers.get('content-disposition') ?? '') ?? [];
  const name = written ?? new URL(url).pathname.split('/').pop() ?? '';
  return name.replace(/[^\w.() -]/g, '_').slice(-100) || 'answer';
}
