// Problems about a payment, in words for its payer. A step that cannot say what happened to the money says just that,
// with 503 and the charge id. It never answers 402: a payer who is told to pay again may pay twice.
import type { Charge } from '../../domain/payment/charge.ts';
import { problem, secondsToWait, type Problem, type ProblemCode } from '../../domain/problem.ts';

type ProblemAbout = {
  readonly chargeId?: string | undefined;
  /** Seconds after which to come back. */
  readonly retryAfter?: number;
  readonly members?: Problem['members'];
};

function paymentProblem(code: ProblemCode, detail: string, about: ProblemAbout): Problem {
  const { chargeId, retryAfter, members } = about;
  return problem(code, detail, {
    retryAfter,
    members: { ...(chargeId === undefined ? {} : { charge_id: chargeId }), ...members },
  });
}

const IN_USE_SECONDS = 2;
const AWAY_SECONDS = 5;
const UNSETTLED_SECONDS = 2;
const LONGEST_UNKNOWN_SECONDS = 30;

type LeaseTimes = { readonly ledger: { readonly now: () => number }; readonly options: { readonly leaseMs: number } };

/** Problem of a payment on which another request works. `charge` is as the ledger has it, if it has one. */
export function paymentInUse({ ledger, options }: LeaseTimes, charge: Charge | undefined): Problem {
  const restMs = (charge?.leaseUntil ?? 0) - ledger.now();
  // A living owner renews its lease when a third of it is left at the latest.
  const overdue = restMs > 0 && restMs < options.leaseMs / 2;
  return paymentProblem(
    'payment_in_use',
    'This payment is being used by another request. Send it again when that is answered.',
    { chargeId: charge?.id, retryAfter: overdue ? Math.ceil(restMs / 1000) : IN_USE_SECONDS },
  );
}

export function settlementUnknown(charge: Charge): Problem {
  return paymentProblem('settlement_unknown', 'The end of the settlement is not known yet.', {
    retryAfter: Math.min(LONGEST_UNKNOWN_SECONDS, 2 ** Math.max(0, charge.attempts - 1)),
  });
}

/**
 * Problem of a facilitator that cannot be used. `networks` are those on which the same request can be paid now;
 * `retryAfterMs` is when a facilitator is asked again, if known.
 */
export function facilitatorUnavailable(
  what: 'verified' | 'settled',
  networks: readonly string[],
  retryAfterMs: number | undefined,
): Problem {
  const instead = networks.length === 0 ? '' : ` What can be paid on now: ${networks.join(', ')}.`;
  return paymentProblem(
    'facilitator_unavailable',
    `The payment cannot be ${what} right now; nothing was charged. Send the same request again later.${instead}`,
    {
      members: { charged: false },
      retryAfter: retryAfterMs === undefined ? AWAY_SECONDS : secondsToWait(retryAfterMs),
    },
  );
}

export function tooManyUnsettled(): Problem {
  return paymentProblem(
    'too_many_unsettled',
    'This payer has too many payments that are not settled yet; nothing was charged. Try again later.',
    { retryAfter: UNSETTLED_SECONDS, members: { charged: false } },
  );
}

export function tooManyPasses(): Problem {
  return paymentProblem(
    'too_many_passes',
    'This payer has as many passes of this plan as there may be at a time; nothing was charged. Use one of them up first.',
    { members: { charged: false } },
  );
}

export function ledgerUnavailable(): Problem {
  return paymentProblem(
    'ledger_unavailable',
    'Payments cannot be recorded right now, so none is taken. Send the same request again later.',
    { retryAfter: AWAY_SECONDS },
  );
}
