// The webhooks of a process: the endpoints of its configuration, and what an operator may see and do with them. Who sends is
// another file's matter; here is nothing but the outbox.
import type { AuditCause } from '../../domain/audit.ts';
import type { EVERY_EVENT, WebhookType } from '../../domain/webhooks/event-types.ts';
import type {
  DeliveryState,
  EndpointState,
  StoredDelivery,
  WebhookStore,
} from '../../domain/webhooks/webhook-store.ts';

export type WebhookEndpoint = {
  readonly id: string;
  readonly url: string;
  readonly events: readonly (WebhookType | typeof EVERY_EVENT)[];
};

/** An endpoint with what became of its events. */
export type WebhookStanding = { readonly endpoint: WebhookEndpoint; readonly state: EndpointState };

export type DeliveryPage = { readonly deliveries: readonly StoredDelivery[]; readonly nextBefore: number | undefined };
type PageQuery = {
  readonly state?: DeliveryState | undefined;
  readonly limit: number;
  readonly before?: number | undefined;
};

/**
 * Calls about an endpoint that is not configured answer undefined; all reject with LedgerUnavailable if the store cannot say.
 * `cause` goes into the audit log.
 */
export type Webhooks = {
  /** In the order of the configuration. */
  readonly list: () => Promise<readonly WebhookStanding[]>;
  readonly deliveries: (id: string, query: PageQuery) => Promise<DeliveryPage | undefined>;
  /** The id of the event that is sent. */
  readonly test: (id: string, cause: AuditCause) => Promise<string | undefined>;
  readonly enable: (id: string, cause: AuditCause) => Promise<true | undefined>;
  /** False if no event with this id is kept. */
  readonly retry: (id: string, eventId: string, cause: AuditCause) => Promise<boolean | undefined>;
};

/** `endpoints`: those of the configuration in force. `wake` has what was asked for sent at once. */
export function createWebhooks(
  store: WebhookStore,
  endpoints: () => readonly WebhookEndpoint[],
  wake: () => void = () => undefined,
): Webhooks {
  const isKnown = (id: string): boolean => endpoints().some((each) => each.id === id);
  return {
    list: async () => {
      const states = new Map((await store.endpoints()).map((state) => [state.id, state]));
      return endpoints().map((endpoint) => ({ endpoint, state: states.get(endpoint.id) ?? stateOfNew(endpoint.id) }));
    },
    deliveries: async (id, { state, limit, before }) => {
      if (!isKnown(id)) return undefined;
      const found = await store.deliveries({ endpointId: id, state, limit: limit + 1, before });
      const deliveries = found.slice(0, limit);
      return { deliveries, nextBefore: found.length > limit ? deliveries.at(-1)?.n : undefined };
    },
    test: async (id, cause) => {
      if (!isKnown(id)) return undefined;
      const content = JSON.stringify({ webhook_id: id });
      const event = await store.tell({ type: 'test', subject: '', content, endpointId: id }, cause);
      wake();
      return event;
    },
    enable: async (id, cause) => {
      if (!isKnown(id)) return undefined;
      await store.enable(id, cause);
      wake();
      return true;
    },
    retry: async (id, eventId, cause) => {
      if (!isKnown(id)) return undefined;
      const isKept = await store.retry(id, eventId, cause);
      wake();
      return isKept;
    },
  };
}

/** An endpoint that no start has declared yet. */
function stateOfNew(id: string): EndpointState {
  return { id, status: 'ok', since: null, waiting: 0, oldestWaitingAt: null, lastSuccessAt: null, lastError: null };
}
