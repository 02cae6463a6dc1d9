// What is allowed and probably not meant. `check` prints these and the start logs them; nothing is refused here.
import { hostOf, isSafeUrl, parseUrl } from './fields.ts';
import { isNearby } from './addresses.ts';
import { knownAssetOf } from './receivers.ts';
import type { LoadedConfig } from './config.ts';

export function configWarnings(config: LoadedConfig): string[] {
  const warnings: string[] = [];
  const { proxy, receivers, routes } = config;
  if (proxy) {
    if (proxy.undeclaredMethods === 'forward' && proxy.upstreamProfile === 'unknown') {
      warnings.push(
        `proxy.undeclared_methods is forward while proxy.upstream_profile is unknown: an upstream that answers any method alike gives a GET route away to POST; write undeclared_methods: pay, or the profile of your framework; \`tollgate probe --upstream ${proxy.upstream.origin} --path PATH\` finds out`,
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
      warnings.push('proxy.upstream is plain http to a public address: whoever reaches it directly pays nothing');
    }
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
  for (const receiver of receivers) {
    const known = knownAssetOf(receiver);
    if (
      known &&
      (known.name !== receiver.assetName ||
        known.version !== receiver.assetVersion ||
        known.decimals !== receiver.assetDecimals)
    ) {
      warnings.push(
        `receiver ${receiver.id}: USDC on ${receiver.network} has asset_name "${known.name}", asset_version "${known.version}" and ${known.decimals} decimals; with others every signature is refused. Leave the fields out`,
      );
    }
    if (receiver.facilitators.some(({ url }) => !isSafeUrl(url))) {
      warnings.push(
        `receiver ${receiver.id}: a facilitator is spoken to in plain http beyond this network; its word decides what is paid, so write https`,
      );
    }
    if (config.x402.v1 && receiver.v1Network === undefined) {
      warnings.push(`receiver ${receiver.id}: its network has no x402 v1 name, so v1 clients cannot pay it`);
    }
  }
  const { sync } = config;
  if (sync && !isSafeUrl(sync.registryUrl)) {
    warnings.push(
      `sync.insecure: the API key and the routes travel in plain http to ${hostOf(parseUrl(sync.registryUrl) ?? new URL('http://-'))}`,
    );
  }
  return warnings;
}
