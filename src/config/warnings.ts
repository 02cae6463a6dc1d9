// Warns of settings that are allowed and probably not meant. `check` prints these and the start logs them; nothing is
// refused here.
import path from 'node:path';
import { RUNNING_FILE } from './data-folder.ts';
import { hostOf, isSafeUrl, parseUrl } from './fields.ts';
import { formatListen, isLoopback, isNearby } from './addresses.ts';
import type { Networks } from '../domain/payment/network.ts';
import type { ReceiverWay } from '../domain/payment/offer.ts';
import { readAgain } from './receivers.ts';
import { priceWarnings } from './price-warnings.ts';
import { storeWarnings } from './store.ts';
import type { ConfigRoute, LoadedConfig, ProxyConfig } from './config.ts';

const LARGE_AMOUNT = 10_000;
const SHORT_TIMEOUT_S = 120;

export function configWarnings(config: LoadedConfig, networks: Networks): string[] {
  const warnings: string[] = [];
  const { proxy, front, receivers, routes } = config;
  if (proxy) {
    if (proxy.publicUrl === undefined && proxy.hosts.length === 0) {
      warnings.push(
        isFromFlags(config)
          ? 'without --public-url, absolute redirects of this API are charged: write the URL at which clients reach it'
          : 'without `public_url` and `hosts`, absolute redirects of this API are charged: set one',
      );
    }
    if (proxy.undeclaredMethods === 'forward' && proxy.upstreamProfile === 'unknown') {
      const [getAlone] = onlyForGet(routes);
      warnings.push(
        `proxy.undeclared_methods is forward while proxy.upstream_profile is unknown: an upstream that answers any method alike gives ${getAlone === undefined ? 'a GET route' : `GET ${getAlone.route_pattern}`} away to POST; write undeclared_methods: pay, or the profile of your framework; \`tollgate probe --upstream ${proxy.upstream.origin} --path PATH\` finds out`,
      );
    }
    if (proxy.trustedProxies.some((cidr) => cidr.endsWith('/0'))) {
      warnings.push(
        'proxy.trusted_proxies holds every address: any client can then say where it comes from and who it is',
      );
    }
    if (
      proxy.upstream.protocol === 'http' &&
      /^[\d.:a-f]+$/i.test(proxy.upstream.host) &&
      !isNearby(proxy.upstream.host)
    ) {
      const named = isFromFlags(config) ? '--upstream' : 'proxy.upstream';
      warnings.push(`${named} is plain http to a public address: clients that reach it directly pay nothing`);
    }
  }
  if (front) {
    if (receivers.length === 0) {
      warnings.push('receivers is empty: every request that has to be paid is answered 503 receiver_unknown');
    } else if (
      !receivers.some(({ id }) => id === 'default') &&
      (routes.length === 0 || routes.some((route) => route.receiver_config_id === null))
    ) {
      warnings.push(
        'no receiver has the id `default`: routes without receiver_config_id are answered 503 receiver_unknown',
      );
    }
  }
  warnings.push(...decisionWarnings(config));
  for (const { method, route_pattern: pattern, amount, currency } of routes) {
    if (Number(amount) < LARGE_AMOUNT) continue;
    warnings.push(
      `the route ${method} ${pattern} costs ${amount} ${currency} a request; amounts are whole units of the currency, not cents or the token's smallest unit`,
    );
  }
  for (const { id, ways } of receivers) {
    warnings.push(...ways.flatMap((way) => wayWarnings(way, ways.length > 1, networks, proxy)));
    if (config.x402.v1 && !ways.some(({ networkName }) => networks.find(networkName)?.v1 !== undefined)) {
      const what = ways.length > 1 ? 'none of its networks has an' : 'its network has no';
      warnings.push(`receiver ${id}: ${what} x402 v1 name, so v1 clients cannot pay it`);
    }
  }
  if (config.discovery !== undefined && front === undefined)
    warnings.push('discovery does nothing here: a registry alone takes no payments; write it where the proxy is');
  warnings.push(...otlpWarnings(config), ...assertionWarnings(config));
  const { plans, customers } = config.selling;
  for (const plan of plans.byId.values()) {
    const asks = plan.customers.some((id) => customers.get(id)?.proof.kind === 'ask');
    if (config.decision !== undefined && asks)
      warnings.push(
        `the plan ${plan.id} asks the API who a customer is, which a decision listener cannot: its routes are answered 503 plan_unanswerable there`,
      );
    for (const pass of plan.passes)
      if (Number(pass.amount) > 1)
        warnings.push(
          `the pass ${pass.id} of the plan ${plan.id} costs ${pass.amount}: public clients refuse more than 1 unless they are told to pay it`,
        );
    if (config.decision !== undefined && plan.meter !== undefined)
      warnings.push(
        `the plan ${plan.id} has a meter, and a decision listener sees no response: its routes are answered 503 plan_unanswerable there`,
      );
    if (proxy !== undefined && plan.free?.by === 'address' && proxy.trustedProxies.length === 0)
      warnings.push(
        `the plan ${plan.id} counts free requests by address, and proxy.trusted_proxies names nobody: behind a proxy or load balancer all clients are one address`,
      );
  }
  warnings.push(...priceWarnings(config));
  const { sync } = config;
  if (sync && !isSafeUrl(sync.registryUrl)) {
    warnings.push(
      `sync.insecure: the API key and the routes travel in plain http to ${hostOf(parseUrl(sync.registryUrl) ?? new URL('http://-'))}`,
    );
  }
  warnings.push(
    ...storeWarnings(config.registry?.store, 'registry.store'),
    ...storeWarnings(config.charges.store, 'charges.store'),
  );
  return warnings;
}

function otlpWarnings({ otlp, front }: LoadedConfig): string[] {
  if (otlp === undefined) return [];
  if (front === undefined) return ['otlp does nothing here: only a proxy traces requests; write it where the proxy is'];
  return isSafeUrl(otlp.endpoint)
    ? []
    : ['otlp.endpoint is plain http beyond this network: spans and headers travel in the open; write https'];
}

function decisionWarnings({ decision = [] }: LoadedConfig): string[] {
  return decision.flatMap(({ listen, secret, trustedPeers, dialect, answerWithinMs }) => {
    const about = `decision ${dialect} on ${formatListen(listen)}`;
    return [
      ...(secret === undefined && !isLoopback(listen.host)
        ? [
            `${about}: it listens beyond this machine without \`secret\`: whoever reaches it from a trusted address can ask; write secret, and send it in the configuration of the proxy`,
          ]
        : []),
      ...(trustedPeers.some((cidr) => cidr.endsWith('/0'))
        ? [`${about}: trusted_peers holds every address: whoever reaches it can ask, and say who asked`]
        : []),
      ...(answerWithinMs >= 30_000 && dialect === 'traefik'
        ? [`${about}: answer_within is ${answerWithinMs / 1000} s, and Traefik gives up after 30 s; write at most 25s`]
        : []),
    ];
  });
}

function assertionWarnings({ assertion, proxy, decision, selling }: LoadedConfig): string[] {
  if (assertion === undefined) return [];
  if (proxy === undefined)
    return decision === undefined
      ? []
      : [
          'assertion signs nothing for a decision listener, whose asker forwards the request; write it where a `proxy` is',
        ];
  if (assertion.on !== 'plan' || selling.plans.byId.size > 0) return [];
  return [
    'assertion.on is plan and `selling.plans` is empty: no request is asserted; write on: protected, or plans and the `plan_id` of routes',
  ];
}

/** Flags were its source, whether they are read now or a command reads what the server wrote of them. */
function isFromFlags({ file }: LoadedConfig): boolean {
  return file === undefined || path.basename(file) === RUNNING_FILE;
}

function wayWarnings(
  of: ReceiverWay,
  isOneOfSeveral: boolean,
  networks: Networks,
  proxy: ProxyConfig | undefined,
): string[] {
  const { way, networkName, facilitators } = of;
  const about = `receiver ${way.receiverId}${isOneOfSeveral ? ` on ${networkName}` : ''}`;
  const reading = readAgain(of, networks);
  const warnings = reading.kind === 'way' ? reading.warnings.map(({ field, message }) => `${field} ${message}`) : [];
  const short = shortTimes(way.timeoutSeconds, proxy);
  if (short !== undefined) warnings.push(short);
  if (facilitators.some(({ url }) => !isSafeUrl(url))) {
    warnings.push(
      'a facilitator is spoken to in plain http beyond this network; its word decides what is paid, so write https',
    );
  }
  return warnings.map((warning) => `${about}: ${warning}`);
}

/** Routes that name GET and whose path no route for any method names. */
function onlyForGet(routes: readonly ConfigRoute[]): readonly ConfigRoute[] {
  const others = new Set(
    routes.filter(({ method }) => method !== 'GET' && method !== 'HEAD').map(({ route_pattern: pattern }) => pattern),
  );
  return routes.filter(({ method, route_pattern: pattern }) => method === 'GET' && !others.has(pattern));
}

function shortTimes(seconds: number, proxy: ProxyConfig | undefined): string | undefined {
  const needed = Math.ceil((proxy?.timeouts.headersMs ?? 0) / 1000) + 10;
  if (proxy !== undefined && seconds < needed) {
    return `max_timeout_seconds is ${seconds}, less than timeouts.headers and 10 s: every payment is then settled before the request is forwarded, and charged for answers such as 404; write at least ${needed}`;
  }
  if (seconds < SHORT_TIMEOUT_S) {
    return `max_timeout_seconds is ${seconds}: a wallet that signs slowly or a clock that is off makes payments expire; write at least ${SHORT_TIMEOUT_S}`;
  }
  return undefined;
}
