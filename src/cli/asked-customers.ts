// Asks the upstream of a configuration what it gives to a made-up credential, on every route whose plan leaves it to the API
// who its customers are: for `probe --config` and `check --online`.
import type { LoadedConfig } from '../config/config.ts';
import { pathOptions } from '../compose/part.ts';
import type { Route } from '../domain/routing/route.ts';
import { compileSnapshot } from '../domain/routing/snapshot.ts';
import { createRandom, systemSchedule } from '../host/clock.ts';
import { createAsk } from './probe/ask.ts';
import type { KnownPath } from './probe/canaries.ts';
import { credentialTrials, tryCredentials, type TriedCredential } from './probe/made-up-credential.ts';

type TrialSettings = {
  readonly upstream: URL;
  /** Headers that go with each question, `host` among them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly parallel: number;
  readonly bodyLimit: number;
  /** Paths that the API answers; each is asked under its route, in place of a path made out of the pattern. */
  readonly paths: readonly KnownPath[];
};

/** Tells whether some plan leaves it to the API who a customer is. */
export function hasAskedCustomers({ selling }: Pick<LoadedConfig, 'selling'>): boolean {
  const { plans, customers } = selling;
  return [...plans.byId.values()].some((plan) => plan.customers.some((id) => customers.get(id)?.proof.kind === 'ask'));
}

export async function tryAskedCustomers(
  config: LoadedConfig,
  routes: readonly Route[],
  { paths, ...settings }: TrialSettings,
): Promise<readonly TriedCredential[]> {
  const snapshot = compileSnapshot({ registryId: 'probe', revision: 0, routes }, pathOptions(config));
  const named = paths.flatMap(({ path, query }) => {
    const resolution = snapshot.resolve('GET', path);
    return resolution.ok && resolution.match.kind === 'route'
      ? [{ id: resolution.match.route.id, target: path + query }]
      : [];
  });
  const known = ({ id }: Route): string[] => named.filter((each) => each.id === id).map(({ target }) => target);
  const random = createRandom();
  return tryCredentials(credentialTrials(routes, config.selling, known), {
    ask: (target, credential) =>
      createAsk({ ...settings, headers: { ...settings.headers, ...credential }, schedule: systemSchedule })(
        'GET',
        target,
      ),
    unlikely: () => `tollgate-probe-${random(16).toString('hex')}`,
    parallel: settings.parallel,
  });
}
