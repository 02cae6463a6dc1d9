// `tollgate charges refund`: records what the operator sent back, proven on the chain or, where none can be read, by the
// operator's word. `tollgate charges refunded` says only that a charge is settled between the two.
import type { Ledger } from '../domain/payment/ledger.ts';
import { refundedAmount } from '../domain/payment/refund.ts';
import { formatPrice } from '../domain/payment/money.ts';
import { findServices, type Receiver } from '../domain/payment/offer.ts';
import { proveRefunds } from '../compose/refunds.ts';
import { createRandom, systemClock } from '../host/clock.ts';
import { recordRefund, type RefundRequest } from '../registry/charges/record-refund.ts';
import { commandCause } from './command-cause.ts';
import { EXIT, type ExitCode, type Io } from './command.ts';

const ALIVE_MS = 60_000;

export async function recordCommandRefund(
  ledger: Ledger,
  request: RefundRequest,
  receivers: ReadonlyMap<string, Receiver>,
  io: Io,
): Promise<ExitCode> {
  const prover = proveRefunds((way) => findServices(receivers, way), systemClock);
  const actor = { owner: `operator-${createRandom()(8).toString('hex')}`, cause: commandCause() };
  // Waiting for a node's turn keeps no process alive.
  const alive = setInterval(() => undefined, ALIVE_MS);
  const outcome = await recordRefund(request, { ledger, prover, actor }).finally(() => clearInterval(alive));
  const advice = 'if you sent it and no chain can show it, say so with --unproven';
  switch (outcome.kind) {
    case 'recorded':
    case 'known': {
      const { charge } = outcome;
      const given = formatPrice({ units: refundedAmount(charge), scale: charge.way.decimals });
      const state = charge.refundedAt === null ? 'refunded in part' : 'refunded';
      io.out([charge.id, state, given, outcome.kind === 'known' ? 'recorded before' : ''].join('\t').trimEnd());
      return EXIT.fine;
    }
    case 'unknown_charge':
      io.err('no charge has this id; `tollgate charges list` shows them');
      return EXIT.no;
    case 'invalid':
      io.err(`--${outcome.member === 'transaction' ? 'tx' : 'amount'}: ${outcome.why}`);
      return EXIT.usage;
    case 'unproven':
      io.err(`not proven: ${outcome.why}; ${advice}`);
      return EXIT.no;
    case 'chain_away':
      io.err(`${outcome.why} (--unproven)`);
      return EXIT.away;
    case 'exceeds':
    case 'differs':
    case 'busy':
      io.err(outcome.why);
      return EXIT.no;
    default:
      return outcome satisfies never;
  }
}
