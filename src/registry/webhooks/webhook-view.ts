// Endpoints and deliveries as people see them: what the endpoints answer, and what `tollgate webhooks` prints.
import type { StoredDelivery } from '../../domain/webhooks/webhook-store.ts';
import type { DeliveryView, WebhookView } from './webhook-schemas.ts';
import type { WebhookStanding } from './webhook-standings.ts';

export function viewWebhook({ endpoint: { id, url, events }, state }: WebhookStanding): WebhookView {
  return {
    ...{ id, host: new URL(url).host, events: [...events], status: state.status, since: timeOf(state.since) },
    ...{ waiting: state.waiting, oldest_waiting_at: timeOf(state.oldestWaitingAt) },
    ...{ last_success_at: timeOf(state.lastSuccessAt), last_error: state.lastError },
  };
}

export function viewDelivery({ event, state, dueAt, tries }: StoredDelivery): DeliveryView {
  return {
    ...{ event_id: event.id, type: event.type, subject: event.subject === '' ? null : event.subject },
    ...{ created_at: new Date(event.at).toISOString(), status: state, next_attempt_at: timeOf(dueAt) },
    attempts: tries.map(({ at, status, durationMs, said }) => ({
      ...{ at: new Date(at).toISOString(), status, duration_ms: durationMs, body: said },
    })),
  };
}

function timeOf(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
