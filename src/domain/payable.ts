// Checks that a configured receiver of this process could take a route's price. If the proxy that serves the route is in
// the same process, a receiver that is not known is an error too; a registry for other processes' proxies cannot judge it
// and stores the route: a proxy that cannot price it answers 503, never free.
import { parsePrice } from './money.ts';
import { DEFAULT_RECEIVER, mostDecimals, offeredWays } from './offer.ts';
import type { FieldError } from './problem.ts';
import type { Receiver } from './receiver.ts';
import type { Route } from './route.ts';

export function findUnpayable(
  route: Pick<Route, 'amount' | 'currency' | 'receiverConfigId'>,
  receivers: ReadonlyMap<string, Receiver>,
  unknownReceiver: 'refuse' | 'store' = 'store',
): readonly FieldError[] {
  const id = route.receiverConfigId ?? DEFAULT_RECEIVER;
  const receiver = receivers.get(id);
  if (!receiver) {
    if (unknownReceiver === 'store') return [];
    const known = [...receivers.keys()].join(', ');
    const detail = `There is no receiver ${id} here, so that nobody could pay. ${known === '' ? 'None is configured.' : `Configured are ${known}.`}`;
    return [{ pointer: '/receiver_config_id', detail }];
  }
  const errors: FieldError[] = [];
  if (!receiver.currencies.includes(route.currency)) {
    errors.push({
      pointer: '/currency',
      detail: `The receiver ${receiver.id} takes ${receiver.currencies.join(', ')}, not ${route.currency}.`,
    });
  }
  const price = parsePrice(route.amount);
  if (price && offeredWays(receiver, price).length === 0) {
    const most = mostDecimals(receiver);
    const has =
      receiver.ways.length > 1
        ? `No asset of the receiver ${receiver.id} has more than ${most} decimals`
        : `The asset of the receiver ${receiver.id} has ${most} decimals`;
    errors.push({ pointer: '/amount', detail: `${has}; write at most that many digits after the point.` });
  }
  return errors;
}
