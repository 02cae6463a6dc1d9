// `tollgate check`: finds everything that is wrong or odd about a configuration. It starts nothing and leaves nothing
// behind. With `--online` it also asks the services that the configuration names.
import { formatListen } from '../config/addresses.ts';
import type { DecisionConfig, LoadedConfig } from '../config/config.ts';
import { NO_ROUTES } from '../compose/declared-routes.ts';
import { lookAtRoutes, readDiscovery } from '../compose/discovery/discovery.ts';
import {
  countLeftOut,
  makePublication,
  publicationWarnings,
  publishingOf,
  leftOutReason,
} from '../compose/discovery/publication.ts';
import type { PublicationReport } from '../domain/discovery/publication.ts';
import { observationWarnings } from '../compose/observations.ts';
import { nameWay, routeWarnings } from '../compose/way-warnings.ts';
import { secretsFileOf } from '../config/first-start.ts';
import { findConfigFile, loadConfig } from '../config/load.ts';
import type { Issue } from '../config/problems.ts';
import { configWarnings } from '../config/warnings.ts';
import { describeChange, describeDifference, leave, sweep } from '../registry/routes/three-way-merge.ts';
import type { Route } from '../domain/routing/route.ts';
import { describePlan } from '../domain/selling/plan-words.ts';
import { rulesOf } from '../gateway/decision/dialect-rules.ts';
import { NETWORKS } from '../gateway/rails/rails.ts';
import type { Args } from './args.ts';
import { askServices, codeOf, describeFinding } from './check-online.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { CONFIG_FLAG, findRunningConfig, NO_CONFIG, reportProblems } from './configuration.ts';
import { findNeeds } from './check-needs.ts';
import { compileOffline, readOfflineRoutes } from './offline-routes.ts';

export const check: Command = {
  name: 'check',
  summary: 'say everything that is wrong with a configuration',
  usage: [
    'tollgate check [--config FILE] [--online] [--json]',
    '',
    'Prints each problem as file:line:column path: what is wrong, or ok and a summary.',
    'With --online: exit code 1 if a receiver cannot be served, a key is refused, or a plan with ask lets a made-up credential',
    'pass; 69 if a service did not answer.',
  ],
  examples: ['tollgate check', 'tollgate check --config tollgate.yaml --json', 'tollgate check --online'],
  flags: {
    ...CONFIG_FLAG,
    online: {
      help: 'also ask facilitators, nodes, the registry of a sidecar, a PostgreSQL store, the desk’s OpenID provider, and the upstream (a connection; with a plan that uses ask, a GET with a made-up credential)',
    },
    json: { help: 'print {ok, file, problems, warnings, summary, start, public, online}' },
  },
  words: { min: 0, max: 0 },
  run: runCheck,
};

async function runCheck(args: Args, io: Io): Promise<ExitCode> {
  const file = findConfigFile(args.text('config'), io.env, io.folder) ?? (await findRunningConfig(io));
  if (file === undefined) {
    for (const line of NO_CONFIG) io.err(line);
    return EXIT.usage;
  }
  const result = loadConfig(file, io.env, io.folder, NETWORKS);
  const online = result.ok && args.has('online') ? await askServices(result.config, io.version) : undefined;
  const ahead: StartForecast = result.ok ? await lookAhead(result.config) : { warnings: [], issues: [] };
  const { start, discovery, told } = ahead;
  const problems = result.ok
    ? [...findNeeds(result.config), ...ahead.issues].map(({ path, message }) => result.problemAt(path, message))
    : result.problems;
  // Routes that are refused get no warnings as well.
  const isRefused = problems.some(({ path }) => path.startsWith('routes'));
  const warnings = ahead.warnings.filter((warning) => !(isRefused && warning.startsWith('receivers is empty')));
  const code = problems.length > 0 ? EXIT.usage : codeOf(online ?? []);
  const summary = result.ok ? { ...summarize(result.config), ...(discovery && { discovery }) } : undefined;
  if (args.has('json')) {
    io.out(
      JSON.stringify({
        ok: code === EXIT.fine,
        file,
        problems,
        warnings,
        summary: summary ?? null,
        ...(start === undefined ? {} : { start }),
        ...(told === undefined ? {} : { public: toJson(told) }),
        ...(online === undefined ? {} : { online }),
      }),
    );
  } else if (problems.length === 0) {
    io.out(code === EXIT.fine ? 'ok' : 'the file is in order; the services that it names are not');
    for (const [name, value] of Object.entries(summary ?? {})) io.out(`  ${name}: ${value}`);
    if (start !== undefined) for (const line of describeStart(start)) io.out(`  ${line}`);
    if (told !== undefined) for (const line of describePublic(told)) io.out(`  ${line}`);
    for (const finding of online ?? []) io.out(`  ${describeFinding(finding)}`);
  } else {
    reportProblems(problems, io.out);
  }
  if (!args.has('json')) for (const warning of warnings) io.err(`warning: ${warning}`);
  return code;
}

/** Changes that a start with this file would make to the routes of its store. */
type Start = {
  readonly creates: readonly string[];
  readonly changes: readonly string[];
  readonly deletes: readonly string[];
  /** Differences between store and file that a start leaves as they are. */
  readonly differences: readonly string[];
};

type StartForecast = {
  readonly issues: readonly Issue[];
  readonly start?: Start | undefined;
  /** Number of routes that will be public. */
  readonly discovery?: string | undefined;
  /** Report of what will be published about the routes for sale. */
  readonly told?: PublicationReport | undefined;
  readonly warnings: readonly string[];
};

/** Looks for what deserves a second look before a start. A sidecar has no routes of its own to look at. */
async function lookAhead(config: LoadedConfig): Promise<StartForecast> {
  const warnings = [...configWarnings(config, NETWORKS), ...observationWarnings(config, Date.now())];
  const read = config.front === undefined ? undefined : await readDiscovery(config);
  warnings.push(...(read?.remarks ?? []));
  if (config.registry === undefined)
    return { discovery: read && 'routes of the registry will be public', warnings, issues: [] };
  const offline = await readOfflineRoutes(config);
  if (!offline.ok && offline.isDamaged)
    return { warnings, issues: [{ path: ['registry', 'store'], message: offline.problem }] };
  if (!offline.ok) return { warnings: [...warnings, offline.problem], issues: [] };
  const { plan, routes } = offline;
  const swept = sweep(plan);
  if (swept !== undefined) warnings.push(`a start with this file ${swept}; a reload holds it back and changes nothing`);
  if (config.front !== undefined && routes.length === 0) warnings.push(NO_ROUTES);
  const shown = read && (await lookAtRoutes(read, routes));
  warnings.push(...(shown?.remarks ?? []));
  const told = await lookAtPublic(config, read?.description?.owner, routes);
  if (told !== undefined) warnings.push(...publicationWarnings(told));
  warnings.push(...routeWarnings(config, routes));
  const start = {
    creates: plan.creates.map((route) => `${route.method} ${route.route_pattern} ${route.amount} ${route.currency}`),
    changes: plan.changes.map(describeChange),
    deletes: plan.deletes.map((route) => `${route.method} ${route.pattern} ${route.amount} ${route.currency}`),
    differences: [...plan.differences, ...plan.left.map(leave)].map(describeDifference),
  };
  const discovery = shown && `${shown.publicRoutes} of ${shown.pricedRoutes} routes will be public`;
  return { start, discovery, told, warnings, issues: [] };
}

async function lookAtPublic(
  config: LoadedConfig,
  owner: string | undefined,
  routes: readonly Route[],
): Promise<PublicationReport | undefined> {
  const publishing = publishingOf(config);
  return publishing && (await makePublication(publishing, owner, compileOffline(config, routes))).report;
}

function describePublic(report: PublicationReport): string[] {
  const { operations, leftOut, bytes } = report;
  const told = operations.map(({ method, path, amount, currency }) => `${method} ${path} ${amount} ${currency}`);
  const left = leftOut.map((each) => `${each.method} ${each.pattern} (${leftOutReason(each)})`);
  const more = countLeftOut(report) - left.length;
  return [
    `public: ${operations.length} operations in /openapi.json (${bytes} bytes) and /llms.txt`,
    ...shorten(told, 'public'),
    ...shorten(left, 'not public'),
    ...(more > 0 ? [`not public: ${more} further routes`] : []),
  ];
}

function toJson({ operations, leftOut, bytes }: PublicationReport): object {
  const left = leftOut.map((each) => ({ method: each.method, route_pattern: each.pattern, why: each.why }));
  return { operations, left_out: left, bytes };
}

function describeStart({ creates, changes, deletes, differences }: Start): string[] {
  return [
    ...shorten(creates, 'a start creates'),
    ...shorten(changes, 'a start changes'),
    ...shorten(deletes, 'a start deletes'),
    ...shorten(differences, 'differs from the store'),
  ];
}

/** A file of a thousand routes is not listed line by line; `--json` is. */
function shorten(lines: readonly string[], what: string): string[] {
  const shown = lines.slice(0, MOST_LINES).map((line) => `${what}: ${line}`);
  return lines.length > shown.length ? [...shown, `${what}: ${lines.length - shown.length} more, see --json`] : shown;
}

const MOST_LINES = 20;

/** The listener, and what its proxy has to send. */
function describeListener({ dialect, listen, secret, secretHeader }: DecisionConfig): string {
  const { question, requestId } = rulesOf(dialect);
  const asked = question === undefined ? [] : [question.method, question.target];
  const named = [...asked, requestId, ...(secret === undefined ? [] : [secretHeader.toLowerCase()])];
  return `${dialect} on ${formatListen(listen)}; the proxy sends ${named.join(', ')} (config/proxies)`;
}

/** No secret, and nothing that could hold one. */
function summarize(config: LoadedConfig): Record<string, string> {
  const { proxy, decision = [], registry, sync, admin, receivers, selling } = config;
  return {
    shape: config.shape,
    ...(proxy ? { proxy: `${formatListen(proxy.listen)} -> ${proxy.upstream.origin}` } : {}),
    ...(decision.length === 0 ? {} : { decision: decision.map(describeListener).join('; ') }),
    ...(registry ? { registry: `${formatListen(registry.listen)}, store ${registry.store.name}` } : {}),
    ...(sync ? { sync: `${new URL(sync.registryUrl).origin}, snapshot ${sync.snapshotFile}` } : {}),
    admin: formatListen(admin.listen),
    ...Object.fromEntries(
      [...selling.plans.byId.values()].map((plan) => [`plan ${plan.id}`, describePlan(plan, Date.now())]),
    ),
    receivers: receivers.map(({ id, ways }) => `${id} (${ways.map(nameWay).join(', ')})`).join(', ') || 'none',
    routes: `${config.routes.length} in this file`,
    secrets:
      registry &&
      secretsFileOf(registry.store) !== undefined &&
      (!registry.jwt || !registry.apiKeys || !config.charges.secrets)
        ? 'the first start makes those that are missing'
        : 'configured',
  };
}
