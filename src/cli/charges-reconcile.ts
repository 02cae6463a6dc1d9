// `tollgate charges reconcile`: takes every settling charge that no process works on one step further, as a running
// Tollgate does in time. An operator also says with it how a charge ended if nothing else can tell (`--fail`,
// `--settled`), or that its money was given back. Money that may have moved is never declared lost by accident: the
// operator gives the id and a reason, both are kept, and the command refuses if the chain says otherwise.
import type { Charge } from '../domain/payment/charge.ts';
import type { ChargeReports } from '../domain/payment/reports.ts';
import type { Ledger } from '../domain/payment/ledger.ts';
import { findServices, type Receiver } from '../domain/payment/offer.ts';
import type { Actor, ChargeEvent } from '../domain/payment/transition.ts';
import type { Look, Rail } from '../gateway/rails/rail.ts';
import { createRails } from '../gateway/rails/rails.ts';
import { createAuthorize } from '../gateway/rails/x402/auth.ts';
import { reconcileNow } from '../gateway/reconcile.ts';
import { createRandom, systemClock, systemSchedule } from '../host/clock.ts';
import { commandCause } from './command-cause.ts';
import { EXIT, type ExitCode, type Io } from './command.ts';
import { talk } from './configuration.ts';
import { everyCharge } from './every-charge.ts';

const ALIVE_MS = 60_000;

/** Exit code 1 if a charge is still without an end. */
export async function reconcileCharges(
  ledger: Ledger & Pick<ChargeReports, 'list'>,
  receivers: ReadonlyMap<string, Receiver>,
  json: boolean,
  io: Io,
): Promise<ExitCode> {
  const log = talk(io);
  const [clock, random] = [systemClock, createRandom()];
  const chargeLog = { changed: () => undefined };
  const seen = new Map<string, Charge>();
  await withChain(receivers, io, async (rail) => {
    const deps = { rail, ledger, chargeLog, ranUnpaid: () => undefined, log, clock, random };
    for await (const { id } of everyCharge(ledger, { states: ['settling'] })) {
      const found = await ledger.findByChargeId(id);
      const charge = found && (await reconcileNow(deps, found));
      if (charge === undefined) io.err(`${id}: somebody works on it right now`);
      else seen.set(id, charge);
    }
  });
  const charges = [...seen.values()].map(({ id, state, reason, proof }) => ({
    id,
    status: state,
    reason,
    transaction: proof?.transaction ?? null,
  }));
  if (json) io.out(JSON.stringify(charges));
  else {
    for (const { id, status, transaction, reason } of charges) {
      io.out([id, status, transaction ?? '-', reason ?? '-'].join('\t'));
    }
    if (charges.length === 0) io.err('no charge is settling without an owner');
  }
  return charges.some(({ status }) => status === 'settling') ? EXIT.no : EXIT.fine;
}

/** An operator's last word: the payment did not and will not move (`fail`), or it did (`settled`). */
export type Word =
  | { readonly kind: 'fail'; readonly reason: string }
  | { readonly kind: 'settled'; readonly transaction: string };

/** Ends a charge by an operator's word; refuses if the chain can be read and says otherwise. */
export async function endCharge(
  ledger: Ledger,
  id: string,
  word: Word,
  receivers: ReadonlyMap<string, Receiver>,
  io: Io,
): Promise<ExitCode> {
  const charge = await ledger.findByChargeId(id);
  if (charge === undefined) {
    io.err(UNKNOWN_CHARGE);
    return EXIT.no;
  }
  const ending = await withChain(receivers, io, async ({ look }) =>
    eventOf(charge, spell(word, ledger), await look(charge, 'reconciler')),
  );
  if (typeof ending === 'string') {
    io.err(ending);
    return EXIT.no;
  }
  const ended = await ledger.advance(id, ending, operator());
  if (ended.kind === 'ok') {
    io.out([id, ended.charge.state, ended.charge.proof?.transaction].filter((part) => part !== undefined).join('\t'));
    return EXIT.fine;
  }
  io.err(
    ended.because === 'lease_running'
      ? 'somebody works on it right now; try again in a minute'
      : ended.because === 'proof_used'
        ? 'another charge was settled by this very transfer'
        : `only a charge that is settling${word.kind === 'fail' ? '' : ' or failed'} can be ended so; this one is ${charge.state}`,
  );
  return EXIT.no;
}

function operator(): Actor {
  return { owner: `operator-${createRandom()(8).toString('hex')}`, cause: commandCause() };
}

export const UNKNOWN_CHARGE = 'no charge has this id; `tollgate charges list` shows them';

function spell(word: Word, { spelling }: Ledger): Word {
  return word.kind === 'fail' ? word : { ...word, transaction: spelling.identifier(word.transaction) };
}

/** A sentence if the chain says otherwise. */
function eventOf(charge: Charge, word: Word, seen: Look): ChargeEvent | string {
  if (charge.state !== 'settling' && charge.state !== 'failed')
    return `only a charge that is settling${word.kind === 'fail' ? '' : ' or failed'} can be ended so; this one is ${charge.state}`;
  if (word.kind === 'fail') {
    if (seen.kind === 'proven')
      return `the chain says that ${seen.proof.transaction} paid it; \`charges reconcile\` settles it`;
    if (seen.kind === 'open' && seen.used)
      return 'the chain says that this payment was used; by what is not certain yet';
    return { kind: 'failed', by: 'operator', reason: word.reason };
  }
  const { transaction } = word;
  switch (seen.kind) {
    case 'proven':
      return seen.proof.transaction === transaction
        ? { kind: 'settled', proof: seen.proof, leaseMs: 0, by: 'operator' }
        : `the chain says that another transaction paid it: ${seen.proof.transaction}`;
    case 'impossible':
      return `the chain says that it was not paid and never can be: ${seen.reason}`;
    case 'open':
      if (!seen.used) return 'the chain says that this payment was not used';
      break;
    case 'unavailable':
      break;
    default:
      return seen satisfies never;
  }
  const proof = { transaction, logIndex: null, amount: charge.amount, payer: charge.payment.payer };
  return { kind: 'settled', proof, leaseMs: 0, by: 'operator' };
}

/** The operator gave the money of a charge back, outside Tollgate. */
export async function refundCharge(ledger: Ledger, id: string, note: string, io: Io): Promise<ExitCode> {
  const refunded = await ledger.advance(id, { kind: 'refunded', note }, operator());
  if (refunded.kind === 'ok') {
    io.out(`${id}\trefunded`);
    return EXIT.fine;
  }
  const { because, charge } = refunded;
  if (because === 'unknown_charge') io.err(UNKNOWN_CHARGE);
  else if (because === 'lease_running') io.err('somebody delivers it right now; try again in a minute');
  else if (charge !== undefined && charge.refundedAt !== null)
    io.err(`it was refunded on ${new Date(charge.refundedAt).toISOString()}`);
  else io.err(`only a charge whose money moved can be refunded; this one is ${charge?.state ?? 'not known'}`);
  return EXIT.no;
}

/** Waiting for a node's turn keeps no process alive, and this one has nothing else to do. */
async function withChain<T>(
  receivers: ReadonlyMap<string, Receiver>,
  io: Io,
  use: (rail: Rail) => Promise<T>,
): Promise<T> {
  const alive = setInterval(() => undefined, ALIVE_MS);
  try {
    return await use(
      createRails({
        fetch: globalThis.fetch,
        schedule: systemSchedule,
        clock: systemClock,
        log: talk(io),
        services: (way) => findServices(receivers, way),
        authorize: createAuthorize(systemClock, createRandom()),
        observe: () => undefined,
      }),
    );
  } finally {
    clearInterval(alive);
  }
}
