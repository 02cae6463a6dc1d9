// Endpoints about receivers: where money goes and how the services stand that move it, and a check of one of them. Receivers are
// of the configuration: nothing here changes one. Services are named by host, because a URL may hold a key.
import type { z } from 'zod';
import { explorerPage } from '../../domain/payment/explorer.ts';
import { DEFAULT_RECEIVER, type Facilitator, type ReceiverWay } from '../../domain/payment/offer.ts';
import { medianMs } from '../../domain/payment/service-health.ts';
import { problem } from '../../domain/problem.ts';
import type { Route } from '../../domain/routing/route.ts';
import { noteAudit } from '../audit/note-audit.ts';
import { describePrincipal } from '../auth/credentials.ts';
import type { NamedNetworks } from '../charges/charge-view.ts';
import { fail, jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import type { ReceiverCheck, receiverParams, ShownReceiver } from './receiver-schemas.ts';
import type { ServicesHealth } from './receiver-services.ts';

type WayView = ShownReceiver['ways'][number];

export async function listReceivers(
  _call: EndpointCall,
  { receivers, receiverServices, routes, networks }: Services,
): Promise<EndpointOutcome> {
  const health = await receiverServices.health();
  const counts = countRoutes(routes.routeSet().routes);
  const data = [...receivers().values()].map(({ id, ways, currencies }): ShownReceiver => ({
    id,
    ways: ways.map((way) => viewWay(way, health, networks)),
    currencies: [...currencies],
    routes: counts.get(id) ?? 0,
  }));
  return jsonResponse(200, { data });
}

export async function checkReceiver(
  call: EndpointCall<z.output<typeof receiverParams>>,
  services: Services,
): Promise<EndpointOutcome> {
  const { params, principal } = call;
  const { receivers, receiverChecks, clock, log } = services;
  const receiver = receivers().get(params.id);
  if (receiver === undefined) return fail(problem('not_found', 'There is no receiver with this id.'));
  const outcome = await receiverChecks(receiver);
  if (outcome.kind === 'too_soon') {
    const { retryAfter } = outcome;
    return fail(problem('too_many_requests', 'This receiver was checked a moment ago.', { retryAfter }));
  }
  const { findings } = outcome;
  const ok = findings.every(({ level }) => level === 'ok' || level === 'warning');
  log.info('receiver checked', { receiver: receiver.id, ok, by: describePrincipal(principal) });
  await noteAudit(services, call, { kind: 'receiver.checked', subject: receiver.id, to: { ok } });
  const checked_at = new Date(clock.now()).toISOString();
  return jsonResponse(200, {
    ok,
    findings: findings.map(({ level, detail }) => ({ level, detail })),
    checked_at,
  } satisfies ReceiverCheck);
}

function countRoutes(routes: Iterable<Pick<Route, 'receiverConfigId'>>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { receiverConfigId } of routes) {
    const id = receiverConfigId ?? DEFAULT_RECEIVER;
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

function viewWay(
  { way, testnet, facilitators, rpcUrls }: ReceiverWay,
  health: ServicesHealth,
  networks: NamedNetworks,
): WayView {
  const { scheme, network, asset, decimals, payTo } = way;
  const known = networks.find(network);
  const token = known?.tokens.find(({ address }) => address.toLowerCase() === asset.toLowerCase());
  const [node] = rpcUrls;
  return {
    ...{ scheme, network, network_name: known?.name ?? null, testnet: testnet ?? null },
    ...{ asset, symbol: token?.symbol ?? null, decimals, pay_to_address: payTo },
    address_url: known === undefined ? null : explorerPage(known.explorer, 'address', payTo),
    facilitators: facilitators.map((facilitator) => viewFacilitator(facilitator, health)),
    rpc: node === undefined ? null : { host: new URL(node).host, status: health.node(node, network) },
  };
}

function viewFacilitator(facilitator: Facilitator, health: ServicesHealth): WayView['facilitators'][number] {
  const { status, sinceMs, lastError, durationsMs } = health.facilitator(facilitator);
  return {
    ...{ host: new URL(facilitator.url).host, auth: facilitator.auth?.kind ?? null, status },
    since: sinceMs === null ? null : new Date(sinceMs).toISOString(),
    last_error: lastError,
    p50_ms: medianMs(durationsMs),
  };
}
