// The types of events that webhooks carry, by the words of their bodies, and what `*` of a configuration stands for.

export const CHARGE_EVENTS = [
  'charge.claimed',
  'charge.settled',
  'charge.delivered',
  'charge.released',
  'charge.failed',
  'charge.unknown',
  'charge.refunded',
] as const;
export const ROUTE_EVENTS = ['route.created', 'route.updated', 'route.deleted'] as const;
export const ATTENTION_EVENTS = ['attention.raised', 'attention.cleared'] as const;

/** Every type but `test`, which goes to the endpoint that it was asked for and to no other. */
export const EVENT_TYPES = [...CHARGE_EVENTS, ...ROUTE_EVENTS, ...ATTENTION_EVENTS] as const;
export const EVERY_EVENT = '*';

export type ChargeEventType = (typeof CHARGE_EVENTS)[number];
export type RouteEventType = (typeof ROUTE_EVENTS)[number];
export type AttentionEventType = (typeof ATTENTION_EVENTS)[number];
export type WebhookType = (typeof EVENT_TYPES)[number];

/** The types that `events` of a configuration ask for: `*` is every type but `charge.claimed`, which has to be named. */
export function typesOf(events: readonly (WebhookType | typeof EVERY_EVENT)[]): readonly WebhookType[] {
  const all = events.includes(EVERY_EVENT);
  return EVENT_TYPES.filter((type) => events.includes(type) || (all && type !== 'charge.claimed'));
}
