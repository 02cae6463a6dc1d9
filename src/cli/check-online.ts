// The calls of `tollgate check --online`: to the facilitators and nodes of every receiver, a sidecar's registry with
// its key, a shared store, the desk's OpenID provider, and the upstream. They change nothing. The upstream gets a connection and no request, except
// a GET with a made-up credential for each route whose plan leaves it to the API who its customers are.
import { reachUpstream } from '../compose/upstream-check.ts';
import type { LoadedConfig, SyncConfig } from '../config/config.ts';
import { deskOf } from '../config/desk.ts';
import { checkOnline } from '../compose/receiver-services.ts';
import type { Finding } from '../gateway/rails/online-check.ts';
import { createRandom, systemClock } from '../host/clock.ts';
import { messageOf } from '../host/error-message.ts';
import { planWorkers, thisMachine } from '../host/worker-count.ts';
import { flowSecretsOf } from '../registry/desk/oidc/flow-secrets.ts';
import { createOidcProvider } from '../registry/desk/oidc/oidc-provider.ts';
import { ProviderUnusable } from '../registry/desk/oidc/provider-fetch.ts';
import { storeAt } from '../registry/store/store-kinds.ts';
import { hasAskedCustomers, tryAskedCustomers } from './asked-customers.ts';
import { EXIT, type ExitCode } from './command.ts';
import { readCurrentRoutes } from './current-routes.ts';
import { describeTried, type TriedCredential } from './probe/made-up-credential.ts';

/** About a receiver, or about a service that is no receiver's. */
type OnlineFinding =
  | Finding
  | (Omit<Finding, 'receiver'> & { readonly service: 'registry' | 'upstream' | 'store' | 'sign-in' });

const ANSWER_MS = 5000;

export async function askServices(config: LoadedConfig, version: string): Promise<readonly OnlineFinding[]> {
  const { receivers, sync, proxy, charges } = config;
  const found = await Promise.all([
    checkOnline(receivers, config, { clock: systemClock, random: createRandom() }),
    sync === undefined ? [] : askRegistry(sync, charges.store === undefined, version),
    proxy === undefined ? [] : askUpstream(proxy),
    askCustomers(config, version),
    askStores(config),
    askProvider(config),
  ]);
  return found.flat();
}

export function describeFinding(finding: OnlineFinding): string {
  const about = 'service' in finding ? finding.service : `receiver ${finding.receiver}`;
  return `${finding.level}: ${about}: ${finding.detail}`;
}

/** Something that cannot be served is a definite no, whatever else did not answer. */
export function codeOf(findings: readonly OnlineFinding[]): ExitCode {
  if (findings.some(({ level }) => level === 'cannot_serve')) return EXIT.no;
  return findings.some(({ level }) => level === 'away') ? EXIT.away : EXIT.fine;
}

async function askStores({ registry, charges, workers }: LoadedConfig): Promise<OnlineFinding[]> {
  const { count } = planWorkers(workers, thisMachine());
  // Several workers have a primary that hands connections to them: one process more.
  const processes = count > 1 ? count + 1 : 1;
  const stores = [registry?.store, charges.store].filter((named) => named !== undefined);
  const found = await Promise.all(
    stores.map(async (named) => (await storeAt(named)).examine({ processes, isRegistry: named === registry?.store })),
  );
  return found.flat().map(({ level, detail }) => ({ service: 'store', level, detail }));
}

/** Reads what the OpenID provider of the desk publishes. Its client is proven by nobody but a sign-in. */
async function askProvider({ registry }: LoadedConfig): Promise<OnlineFinding[]> {
  const oidc = registry && deskOf(registry)?.oidc;
  if (oidc === undefined) return [];
  const provider = createOidcProvider(oidc, { fetch, clock: systemClock, callMs: ANSWER_MS });
  const { origin } = new URL(oidc.issuer);
  try {
    await provider.authorizeUrl(flowSecretsOf(''), registry?.desk?.publicUrl ?? '');
    return [{ service: 'sign-in', level: 'ok', detail: `${origin} signs people in` }];
  } catch (error) {
    const level = error instanceof ProviderUnusable ? 'cannot_serve' : 'away';
    return [{ service: 'sign-in', level, detail: `${origin}: ${messageOf(error)}` }];
  }
}

async function askUpstream(proxy: NonNullable<LoadedConfig['proxy']>): Promise<OnlineFinding[]> {
  const sentence = await reachUpstream(proxy);
  return [
    sentence === undefined
      ? { service: 'upstream', level: 'ok', detail: `${proxy.upstream.origin} takes connections` }
      : { service: 'upstream', level: 'away', detail: sentence },
  ];
}

const MOST_FINDINGS = 20;

/** Tries a made-up credential where the API says who a customer is: what it opens is free for everybody. */
async function askCustomers(config: LoadedConfig, version: string): Promise<OnlineFinding[]> {
  const { proxy } = config;
  if (proxy === undefined || !hasAskedCustomers(config)) return [];
  const read = await readCurrentRoutes(config, version);
  const about = 'what the API gives to a made-up credential (ask) was not tried';
  if (!read.ok) return [{ service: 'upstream', level: 'away', detail: `${about}: ${read.problem}` }];
  const upstream = new URL(proxy.upstream.origin);
  const tried = await tryAskedCustomers(config, read.routes, {
    ...{ upstream, timeoutMs: ANSWER_MS, parallel: 4, bodyLimit: 1024, paths: [] },
    headers: { host: upstream.host, 'user-agent': `tollgate-check/${version}`, accept: '*/*' },
  });
  return [
    ...said(tried, 'open', 'cannot_serve'),
    ...said(tried, 'away', 'away'),
    ...said(tried, 'unclear', 'warning'),
    ...said(tried, 'refused', 'ok'),
  ];
}

function said(
  tried: readonly TriedCredential[],
  found: TriedCredential['found'],
  level: Finding['level'],
): OnlineFinding[] {
  const details = tried.filter((each) => each.found === found).map(describeTried);
  const more = details.length - MOST_FINDINGS;
  const shown = [...details.slice(0, MOST_FINDINGS), ...(more > 0 ? [`${more} further routes likewise`] : [])];
  return shown.map((detail) => ({ service: 'upstream', level, detail }));
}

/** Questions that need the scope and change nothing. */
async function askRegistry(sync: SyncConfig, ledger: boolean, version: string): Promise<OnlineFinding[]> {
  const routes = await ask(sync, 'v1/protected-routes/match?method=GET&path=/', version);
  const found = [judge(routes, 'sdk', 'routes come from it')];
  // A registry that is away is away for the ledger too; one answer says it.
  if (ledger && typeof routes === 'number') {
    const claims = await ask(sync, 'v1/ledger/claims', version);
    found.push(
      claims === 404
        ? say('cannot_serve', 'it keeps no ledger, so no payment could be taken; write charges.store')
        : // The comparison leaves the amount asked for out on purpose: it is checked after the key.
          judge(claims === 400 ? 200 : claims, 'ledger', 'charges are kept by it'),
    );
  }
  return found;
}

function judge(status: number | string, scope: string, fine: string): OnlineFinding {
  if (typeof status === 'string') return say('away', `it did not answer: ${status}`);
  if (status === 401) return say('cannot_serve', 'it does not know sync.api_key; write one that it made');
  if (status === 403) return say('cannot_serve', `sync.api_key lacks the scope ${scope}; make one that has it`);
  return status === 200 ? say('ok', fine) : say('away', `it answered with status ${status}`);
}

function say(level: Finding['level'], detail: string): OnlineFinding {
  return { service: 'registry', level, detail };
}

/** The status, or why there was no answer. */
async function ask(sync: SyncConfig, target: string, version: string): Promise<number | string> {
  // The client is imported late: it loads the whole of fetch, which other commands do without.
  const { createRegistryClient } = await import('../gateway/sync/follow/registry-client.ts');
  try {
    const response = await createRegistryClient({ ...sync, version, fetch }).get(target, { totalTimeout: ANSWER_MS });
    await response.body?.cancel();
    return response.status;
  } catch (error) {
    let cause = error;
    while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
    return cause instanceof Error ? cause.message || cause.name : 'unknown reason';
  }
}
