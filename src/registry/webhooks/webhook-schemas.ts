// Schemas of the endpoints about webhooks.
import { z } from 'zod';
import { EVENT_TYPES, EVERY_EVENT } from '../../domain/webhooks/event-types.ts';
import { DELIVERY_STATES } from '../../domain/webhooks/webhook-store.ts';
import { documented, listQuery } from '../http/schemas.ts';

const time = z.iso.datetime();
const id = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/);

const webhookView = z.object({
  id: z.string(),
  /** Host of its URL: the rest may be a secret. */
  host: z.string(),
  events: z.array(z.enum([EVERY_EVENT, ...EVENT_TYPES])),
  status: z.enum(['ok', 'failing', 'disabled']),
  /** Since when it fails or is disabled. */
  since: time.nullable(),
  waiting: z.int(),
  oldest_waiting_at: time.nullable(),
  last_success_at: time.nullable(),
  last_error: z.string().nullable(),
});
export type WebhookView = z.output<typeof webhookView>;

const deliveryView = z.object({
  event_id: z.string(),
  type: z.enum([...EVENT_TYPES, 'test']),
  /** Id of the charge or route that it tells of, or the name of what needs attention; null for a test. */
  subject: z.string().nullable(),
  created_at: time,
  status: z.enum(DELIVERY_STATES),
  /** Null while an earlier event of its subject is under way, and once it is over. */
  next_attempt_at: time.nullable(),
  /** Up to 20, oldest first. */
  attempts: z.array(
    z.object({
      at: time,
      /** Null if no answer came. */
      status: z.int().nullable(),
      duration_ms: z.int(),
      /** The first 256 bytes of what came back, or why nothing did. */
      body: z.string(),
    }),
  ),
});
export type DeliveryView = z.output<typeof deliveryView>;

export const webhookList = z.object({ data: z.array(webhookView) });
export const deliveryList = z.object({ data: z.array(deliveryView), next_cursor: z.string().nullable() });
export const sentEvent = z.object({ event_id: z.string() });
export const enabledWebhook = z.object({ id: z.string() });

export const webhookParams = z.object({ id });
export const deliveryParams = z.object({ id, event_id: z.string().regex(/^evt_[0-9a-f]{32}$/) });
export const deliveriesQuery = z.object({
  limit: listQuery.shape.limit,
  cursor: listQuery.shape.cursor,
  status: z.enum(DELIVERY_STATES, `one of ${DELIVERY_STATES.join(', ')}`).optional(),
});

documented.add(webhookView, {
  id: 'Webhook',
  description: 'An endpoint of the configuration. Never its URL or a secret.',
});
documented.add(webhookList, { id: 'WebhookList' });
documented.add(deliveryView, { id: 'WebhookDelivery', description: 'One event on its way to one endpoint.' });
documented.add(deliveryList, { id: 'WebhookDeliveryList' });
documented.add(sentEvent, { id: 'WebhookEventSent' });
documented.add(enabledWebhook, { id: 'WebhookEnabled' });
