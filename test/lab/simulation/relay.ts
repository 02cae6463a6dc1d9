// A model of what exchange.ts does with a paid request: the upstream's answer is held until the payment has decided, flows
// in pieces, is kept where that was asked for, and ends in exactly one outcome. The upstream fails where it likes.
import type { PaidOutcome } from '../../../src/gateway/outcome.ts';
import type { End } from '../../../src/gateway/outcome.ts';
import type { KeptResponse } from '../../../src/gateway/pay/kept-responses.ts';
import type { OwnResponse } from '../../../src/host/respond.ts';
import type { Actor, Scheduler } from './scheduler.ts';
import type { Watch } from './watch.ts';
import type { Weather } from './weather.ts';

/** One request's connection to its client. */
export type Connection = {
  /** The client left. */
  gone: boolean;
  readonly reply: (reply: Reply) => void;
};

export type Reply =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly reason: string | undefined;
      readonly chargeId: string | undefined;
      readonly served: boolean;
      /** `Retry-After`. */
      readonly retrySeconds?: number;
    }
  /** The connection broke, or the client left. */
  | { readonly kind: 'broken' };

const PIECES = 3;
const PIECE_BYTES = 100;

export async function relayPaid(
  { scheduler, weather, watch, actor }: { scheduler: Scheduler; weather: Weather; watch: Watch; actor: Actor },
  paid: PaidOutcome,
  connection: Connection,
): Promise<void> {
  const { draw } = scheduler;
  const { id } = paid.grant;
  let keep = paid.keep;
  let headSent = false;
  let upstreamStatus: number | undefined;
  /** A byte of the request left. */
  let asked = false;
  const isKept = (): boolean => keep?.isKept === true;
  const leave = (status: number | undefined, kept?: KeptResponse, failed = false): void =>
    paid.done({ kind: 'client_gone', status, headSent, failed, upload: 'whole', asked, kept });
  const fail = (headersSent: boolean): void => {
    if (headersSent) connection.reply({ kind: 'broken' });
    else connection.reply({ kind: 'answer', status: 502, reason: 'upstream_unreachable', chargeId: id, served: false });
    const fault = { code: 'upstream_unreachable', detail: 'model' } as const;
    paid.done({ kind: 'failed', headersSent, status: upstreamStatus, asked, ...fault });
  };

  await scheduler.point(actor, 'sends to the upstream', weather.delay());
  if (connection.gone && !isKept()) return leave(undefined);
  if (weather.happens('upstream_fails')) return connection.gone ? leave(undefined, undefined, true) : fail(false);
  asked = true;
  watch.asked(id);
  await scheduler.point(actor, 'hears of the upstream', weather.delay());
  if (connection.gone && !isKept()) return leave(undefined);
  if (weather.happens('upstream_fails')) return connection.gone ? leave(undefined, undefined, true) : fail(false);
  const status = weather.happens('upstream_fails') ? 500 : 200;
  upstreamStatus = status;
  const verdict = await paid.beforeResponse({ status, headers: [] });
  if (verdict.kind === 'replace') {
    if (connection.gone) return leave(verdict.response.status);
    return answer(scheduler, actor, connection, verdict.response, id, (whole) =>
      whole
        ? paid.done({ kind: 'replaced', status: verdict.response.status, upstreamMs: 0 })
        : leave(verdict.response.status),
    );
  }
  keep = verdict.keep ?? keep;
  keep?.begin(status, []);
  if (connection.gone && !isKept()) return leave(status);
  const large = draw.chance(0.3);
  for (let piece = 0; piece < PIECES; piece++) {
    await scheduler.point(actor, `passes piece ${piece + 1} of ${id.slice(-4)} on`, weather.delay());
    if (weather.happens('upstream_fails')) return connection.gone ? leave(status, undefined, true) : fail(true);
    keep?.add(Buffer.alloc(PIECE_BYTES * (large ? 10 : 1)));
    if (connection.gone && !isKept()) return leave(status);
    if (!connection.gone) headSent = true;
    if (!connection.gone && status === 200) watch.served(id);
  }
  const whole = isKept() ? keep : undefined;
  if (!connection.gone) await scheduler.point(actor, `hands the last byte of ${id.slice(-4)} over`, weather.delay());
  if (connection.gone) return leave(status, whole);
  if (status === 200) watch.servedWhole(id);
  connection.reply({ kind: 'answer', status, reason: undefined, chargeId: id, served: status === 200 });
  await scheduler.point(actor, `ends ${id.slice(-4)}`);
  const outcome: End = { kind: 'delivered', status, upstreamMs: 0, kept: whole };
  paid.done(outcome);
}

/** An answer of ours. `told` hears whether it arrived. */
export async function answer(
  scheduler: Scheduler,
  actor: Actor,
  connection: Connection,
  { status, headers }: OwnResponse,
  chargeId: string | undefined,
  told: (whole: boolean) => void,
  replayOf?: { readonly watch: Watch; readonly id: string; readonly from: 'ledger' | 'memory' },
): Promise<void> {
  await scheduler.point(actor, `answers ${status}`);
  if (connection.gone) return told(false);
  const valueOf = (name: string): string | undefined => {
    const at = headers.indexOf(name);
    return at < 0 ? undefined : headers[at + 1];
  };
  if (replayOf !== undefined) {
    replayOf.watch.served(replayOf.id);
    // From memory it is the delivery that was, once more: only what the ledger gave is one of its own.
    if (replayOf.from === 'ledger') replayOf.watch.servedWhole(replayOf.id);
  }
  connection.reply({
    kind: 'answer',
    status,
    reason: valueOf('Tollgate-Reason'),
    chargeId,
    served: replayOf !== undefined,
    retrySeconds: Number(valueOf('Retry-After') ?? 0),
  });
  await scheduler.point(actor, `answered ${status}`);
  return told(true);
}
