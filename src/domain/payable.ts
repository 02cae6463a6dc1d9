// Whether a receiver that is configured in this process could take a route's price. A receiver that is not known here is
// no error: the route is stored, and a proxy that cannot price it answers 503, never free (CONTRACT section 2).
import { parsePrice, toAtomic } from './money.ts';
import { DEFAULT_RECEIVER } from './offer.ts';
import type { FieldError } from './problem.ts';
import type { Receiver } from './receiver.ts';
import type { Route } from './route.ts';

export function findUnpayable(
  route: Pick<Route, 'amount' | 'currency' | 'receiverConfigId'>,
  receivers: ReadonlyMap<string, Receiver>,
): readonly FieldError[] {
  const receiver = receivers.get(route.receiverConfigId ?? DEFAULT_RECEIVER);
  if (!receiver) return [];
  const errors: FieldError[] = [];
  if (!receiver.currencies.includes(route.currency)) {
    errors.push({
      pointer: '/currency',
      detail: `The receiver ${receiver.id} takes ${receiver.currencies.join(', ')}, not ${route.currency}.`,
    });
  }
  const price = parsePrice(route.amount);
  if (price && toAtomic(price, receiver.assetDecimals) === undefined) {
    errors.push({
      pointer: '/amount',
      detail: `The asset of the receiver ${receiver.id} has ${receiver.assetDecimals} decimals; write at most that many digits after the point.`,
    });
  }
  return errors;
}
