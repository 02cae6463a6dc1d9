// A model of what relay.ts does with a paid request: the upstream's answer is held until the payment has decided, flows
// in pieces, is kept where that was asked for, and ends in exactly one outcome. The upstream fails where it likes.
import type { PaidOutcome } from '../../src/gateway/collect.ts';
import type { ForwardOutcome } from '../../src/gateway/forward-order.ts';
import type { Answer } from '../../src/host/respond.ts';
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
  const { id } = paid.charge;
  let keepLeft = paid.keepBytes ?? -1;
  let kept: Buffer[] = [];
  const leave = (status: number | undefined, answer?: Answer): void =>
    paid.done({ kind: 'client_gone', status, kept: answer });
  const fail = (headersSent: boolean): void => {
    if (headersSent) connection.reply({ kind: 'broken' });
    else connection.reply({ kind: 'answer', status: 502, reason: 'upstream_unreachable', chargeId: id, served: false });
    paid.done({ kind: 'failed', headersSent, code: 'upstream_unreachable', detail: 'model' });
  };

  await scheduler.point(actor, 'sends to the upstream', weather.delay());
  if (connection.gone && keepLeft < 0) return leave(undefined);
  if (weather.happens('upstream_fails')) return connection.gone ? leave(undefined) : fail(false);
  watch.asked(id);
  await scheduler.point(actor, 'hears of the upstream', weather.delay());
  if (connection.gone && keepLeft < 0) return leave(undefined);
  if (weather.happens('upstream_fails')) return connection.gone ? leave(undefined) : fail(false);
  const status = weather.happens('upstream_fails') ? 500 : 200;
  const verdict = await paid.beforeResponse({ status, headers: [] });
  if (verdict.kind === 'replace') {
    if (connection.gone) return leave(verdict.answer.status);
    return answer(scheduler, actor, connection, verdict.answer, id, (whole) =>
      whole
        ? paid.done({ kind: 'replaced', status: verdict.answer.status, upstreamMs: 0 })
        : leave(verdict.answer.status),
    );
  }
  keepLeft = verdict.keepBytes ?? keepLeft;
  if (connection.gone && keepLeft < 0) return leave(status);
  const large = draw.chance(0.3);
  for (let piece = 0; piece < PIECES; piece++) {
    await scheduler.point(actor, `passes piece ${piece + 1} of ${id.slice(-4)} on`, weather.delay());
    if (weather.happens('upstream_fails')) return connection.gone ? leave(status) : fail(true);
    keepLeft -= keepLeft >= 0 ? PIECE_BYTES * (large ? 10 : 1) : 0;
    if (keepLeft >= 0) kept.push(Buffer.alloc(1));
    else kept = [];
    if (connection.gone && keepLeft < 0) return leave(status);
    if (!connection.gone && status === 200) watch.served(id);
  }
  const whole = keepLeft >= 0 ? { status, headers: [], body: Buffer.concat(kept) } : undefined;
  if (!connection.gone) await scheduler.point(actor, `hands the last byte of ${id.slice(-4)} over`, weather.delay());
  if (connection.gone) return leave(status, whole);
  if (status === 200) watch.servedWhole(id);
  connection.reply({ kind: 'answer', status, reason: undefined, chargeId: id, served: status === 200 });
  await scheduler.point(actor, `ends ${id.slice(-4)}`);
  const outcome: ForwardOutcome = { kind: 'delivered', status, upstreamMs: 0 };
  paid.done(outcome);
}

/** An answer of ours. `told` hears whether it arrived. */
export async function answer(
  scheduler: Scheduler,
  actor: Actor,
  connection: Connection,
  { status, headers }: Answer,
  chargeId: string | undefined,
  told: (whole: boolean) => void,
  replayOf?: { readonly watch: Watch; readonly id: string },
): Promise<void> {
  await scheduler.point(actor, `answers ${status}`);
  if (connection.gone) return told(false);
  const at = headers.indexOf('Tollgate-Reason');
  if (replayOf !== undefined) {
    replayOf.watch.served(replayOf.id);
    replayOf.watch.servedWhole(replayOf.id);
  }
  connection.reply({
    kind: 'answer',
    status,
    reason: at < 0 ? undefined : headers[at + 1],
    chargeId,
    served: replayOf !== undefined,
  });
  await scheduler.point(actor, `answered ${status}`);
  return told(true);
}
