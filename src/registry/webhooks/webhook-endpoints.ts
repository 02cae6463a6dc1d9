// Endpoints about webhooks: what there is, what became of their events, a test event, an end to being disabled, and an event once
// more. None of them makes an endpoint or changes where one is: that is for the configuration alone.
import type { z } from 'zod';
import { LedgerUnavailable } from '../../domain/payment/ledger.ts';
import { problem } from '../../domain/problem.ts';
import { causeOf } from '../auth/author.ts';
import { describePrincipal } from '../auth/credentials.ts';
import { fail, jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import { writeCursor } from '../http/schemas.ts';
import type { Services } from '../http/services.ts';
import type { deliveriesQuery, deliveryParams, webhookParams } from './webhook-schemas.ts';
import { viewDelivery, viewWebhook } from './webhook-view.ts';
import type { Webhooks } from './webhook-standings.ts';

export function listWebhooks(_call: EndpointCall, services: Services): Promise<EndpointOutcome> {
  return withWebhooks(services, async ({ list }) => jsonResponse(200, { data: (await list()).map(viewWebhook) }));
}

export function listDeliveries(
  { params, query }: EndpointCall<z.output<typeof webhookParams>, z.output<typeof deliveriesQuery>>,
  services: Services,
): Promise<EndpointOutcome> {
  const { status: state, limit, cursor: before } = query;
  return withWebhooks(services, async ({ deliveries }) => {
    const page = await deliveries(params.id, { state, limit, before });
    if (page === undefined) return unknownWebhook();
    const next = page.nextBefore === undefined ? null : writeCursor(page.nextBefore);
    return jsonResponse(200, { data: page.deliveries.map(viewDelivery), next_cursor: next });
  });
}

export function testWebhook(
  { params, principal, headers }: EndpointCall<z.output<typeof webhookParams>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withWebhooks(services, async ({ test }) => {
    const event = await test(params.id, causeOf({ principal, headers }));
    if (event === undefined) return unknownWebhook();
    services.log.info('a test event goes to a webhook', { webhook_id: params.id, by: describePrincipal(principal) });
    return jsonResponse(202, { event_id: event });
  });
}

export function enableWebhook(
  { params, principal, headers }: EndpointCall<z.output<typeof webhookParams>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withWebhooks(services, async ({ enable }) => {
    if ((await enable(params.id, causeOf({ principal, headers }))) === undefined) return unknownWebhook();
    services.log.info('a webhook endpoint was enabled', { webhook_id: params.id, by: describePrincipal(principal) });
    return jsonResponse(202, { id: params.id });
  });
}

export function retryDelivery(
  { params, principal, headers }: EndpointCall<z.output<typeof deliveryParams>>,
  services: Services,
): Promise<EndpointOutcome> {
  const { id, event_id: event } = params;
  return withWebhooks(services, async ({ retry }) => {
    const isKept = await retry(id, event, causeOf({ principal, headers }));
    if (isKept === undefined) return unknownWebhook();
    if (!isKept) return fail(problem('not_found', 'No event with this id is kept for this webhook.'));
    services.log.info('an event is sent once more', { webhook_id: id, event, by: describePrincipal(principal) });
    return jsonResponse(202, { event_id: event });
  });
}

async function withWebhooks(
  { webhooks, log }: Services,
  use: (webhooks: Webhooks) => Promise<EndpointOutcome>,
): Promise<EndpointOutcome> {
  if (webhooks === undefined) return unavailable('This registry sends no events.');
  try {
    return await use(webhooks);
  } catch (error) {
    if (!(error instanceof LedgerUnavailable)) throw error;
    log.error('the store of webhooks cannot be asked', { error });
    return unavailable('The store of this registry cannot say.');
  }
}

const RETRY_SECONDS = 5;

function unavailable(detail: string): EndpointOutcome {
  return fail(problem('ledger_unavailable', detail, { retryAfter: RETRY_SECONDS }));
}

function unknownWebhook(): EndpointOutcome {
  return fail(problem('webhook_unknown', 'The configuration of this registry has no webhook with this id.'));
}
