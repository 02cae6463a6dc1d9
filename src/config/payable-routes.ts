// Routes that cannot be paid with the receivers: each would answer 503 for ever, so it is refused before anything starts.
// Only receivers and routes that are valid by themselves are looked at.
import type { Networks } from '../domain/payment/network.ts';
import { findUnpayable, type Receiver } from '../domain/payment/offer.ts';
import { suggest } from '../domain/suggest.ts';
import type { Issue } from './problems.ts';
import { receiverIssues } from './receiver-issues.ts';
import { receiverSchema, toReceiver } from './receivers.ts';
import { configRouteSchema } from './route-keys.ts';

/** Complaints about routes that cannot be paid; `raw` may be wrong in any way. */
export function payableIssues(raw: Readonly<Record<string, unknown>>, networks: Networks): Issue[] {
  const { receivers: inputs, routes } = raw;
  if (!Array.isArray(inputs) || !Array.isArray(routes)) return [];
  const receivers = new Map(
    inputs.flatMap((input) => readReceiver(input, networks)).map((receiver) => [receiver.id, receiver]),
  );
  return routes.flatMap((input: unknown, index): Issue[] => {
    const parsed = configRouteSchema.safeParse(input);
    if (!parsed.success) return [];
    const { receiver_config_id: named, currency, amount } = parsed.data;
    if (named !== null && !receivers.has(named)) {
      // An unreadable receiver may be the one that is meant.
      if (receivers.size < inputs.length) return [];
      const meant = suggest(named, receivers.keys());
      const advice = meant === undefined ? 'write the id of one of `receivers`' : `did you mean ${meant}?`;
      return [{ path: ['routes', index, 'receiver_config_id'], message: `names no receiver; ${advice}` }];
    }
    return findUnpayable({ amount, currency, receiverConfigId: named }, receivers).map(({ pointer, detail }) => ({
      path: ['routes', index, pointer.slice(1)],
      message: `cannot be paid: ${detail.charAt(0).toLowerCase()}${detail.slice(1).replace(/\.$/, '')}`,
    }));
  });
}

function readReceiver(input: unknown, networks: Networks): Receiver[] {
  const parsed = receiverSchema.safeParse(input);
  return parsed.success && receiverIssues([input], networks).length === 0 ? [toReceiver(parsed.data, networks)] : [];
}
