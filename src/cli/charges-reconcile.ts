// `tollgate charges reconcile`: takes every settling charge that nobody works on a step further, now and from here, as the
// running Tollgate does by itself in time; and the operator's last word on one whose end nothing else can tell (`--fail`).
// Money that may have moved is never declared lost by accident: --fail needs the id and a reason, and is kept with both.
import type { Charge } from '../domain/charge.ts';
import type { Ledger, Reports } from '../domain/ledger.ts';
import type { Receiver } from '../domain/receiver.ts';
import { createX402Rail } from '../gateway/rails/x402.ts';
import { reconcileNow } from '../gateway/reconcile.ts';
import { createRandom, systemClock, systemSchedule } from '../host/clock.ts';
import { EXIT, type ExitCode, type Io } from './command.ts';
import { talk } from './configuration.ts';

const BATCH = 200;
const LEASE_MS = 30_000;

/** Exit code 1 where a charge is still without an end. */
export async function reconcileCharges(
  ledger: Ledger & Pick<Reports, 'list'>,
  receivers: ReadonlyMap<string, Receiver>,
  json: boolean,
  io: Io,
): Promise<ExitCode> {
  const log = talk(io);
  const [clock, random] = [systemClock, createRandom()];
  const rail = createX402Rail({
    fetch: globalThis.fetch,
    schedule: systemSchedule,
    clock,
    log,
    observe: () => undefined,
  });
  const deps = { rail, ledger, receivers, chargeLog: { changed: () => undefined }, log, clock, random };
  const seen = new Map<string, Charge>();
  const { charges: settling } = await ledger.list({ limit: BATCH, state: 'settling' });
  for (const { id } of settling) {
    const charge = await reconcileNow(deps, id);
    if (charge === undefined) io.err(`${id}: somebody works on it right now`);
    else seen.set(id, charge);
  }
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
    if (charges.length === 0) io.err('no charge is settling that nobody works on');
  }
  return charges.some(({ status }) => status === 'settling') ? EXIT.no : EXIT.fine;
}

/** The operator says that the payment of a `settling` charge did not and will not move. */
export async function failCharge(ledger: Ledger, id: string, reason: string, io: Io): Promise<ExitCode> {
  const random = createRandom();
  const actor = { owner: `operator-${random(8).toString('hex')}` };
  const taken = await ledger.advance(id, { kind: 'taken_over', leaseMs: LEASE_MS, early: true }, actor);
  const failed =
    taken.kind === 'ok' && taken.charge.state === 'settling'
      ? await ledger.advance(id, { kind: 'failed', by: 'operator', reason }, actor)
      : taken;
  if (failed.kind === 'ok' && failed.charge.state === 'failed') {
    io.out(`${id}\tfailed`);
    return EXIT.fine;
  }
  const state = failed.charge?.state;
  const because = failed.kind === 'conflict' ? failed.because : undefined;
  io.err(
    because === 'unknown_charge'
      ? 'no charge has this id; `tollgate charges list` shows them'
      : because === 'lease_running'
        ? `somebody works on it right now; try again in a minute`
        : `only a settling charge can be failed; this one is ${state ?? 'not known'}`,
  );
  return EXIT.no;
}
