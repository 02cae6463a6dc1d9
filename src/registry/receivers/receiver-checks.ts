// Checks of receivers, paced: each asks other people's services, so one receiver is checked once in ten seconds, whoever asks.
import type { Receiver } from '../../domain/payment/offer.ts';
import type { ReceiverFinding, ReceiverServices } from './receiver-services.ts';

const EVERY_MS = 10_000;

/** Findings, or the seconds after which the receiver may be checked again. */
export type PacedCheck =
  | { readonly kind: 'checked'; readonly findings: readonly ReceiverFinding[] }
  | { readonly kind: 'too_soon'; readonly retryAfter: number };

export type ReceiverChecks = (receiver: Receiver) => Promise<PacedCheck>;

export function createReceiverChecks(check: ReceiverServices['check'], monotonic: () => number): ReceiverChecks {
  const begun = new Map<string, number>();
  return async (receiver) => {
    const now = monotonic();
    // Receivers come and go with configurations.
    for (const [id, at] of begun) if (at + EVERY_MS <= now) begun.delete(id);
    const last = begun.get(receiver.id);
    if (last !== undefined) return { kind: 'too_soon', retryAfter: Math.ceil((last + EVERY_MS - now) / 1000) };
    begun.set(receiver.id, now);
    return { kind: 'checked', findings: await check(receiver) };
  };
}
