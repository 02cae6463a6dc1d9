// `tollgate match METHOD PATH`: says which route a request would meet and why. It uses the proxy's own matcher and
// needs no running Tollgate.
import { matchRules, receiversById } from '../compose/part.ts';
import type { LoadedConfig } from '../config/config.ts';
import { explainMatch, type Explanation } from '../domain/explanation.ts';
import { createOffers } from '../domain/payment/offer.ts';
import { toWire, type Route } from '../domain/routing/route.ts';
import { allowedMethods } from '../domain/routing/method.ts';
import type { Args } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { CONFIG_FLAG, loadFor } from './configuration.ts';
import { compileOffline, readOfflineRoutes } from './offline-routes.ts';

export const match: Command = {
  name: 'match',
  summary: 'say which route a request would meet, and why',
  usage: [
    'tollgate match METHOD PATH [--config FILE] [--json]',
    '',
    'Looks at the routes as a start with this file would make them, and writes nothing. Exit code 1 if no route applies,',
    'so that the request would be free, and if the path would be refused.',
  ],
  examples: ['tollgate match GET /reports/q3', 'tollgate match GET /reports/q3 --json'],
  flags: { ...CONFIG_FLAG, json: { help: 'print the answer of /v1/protected-routes/match with the reasons' } },
  words: { min: 1, max: 2 },
  run: runMatch,
};

async function runMatch(args: Args, io: Io): Promise<ExitCode> {
  const [word = '', path = ''] = args.words;
  const method = word.toUpperCase();
  if (args.words.length === 1) {
    io.err(
      word.startsWith('/')
        ? `METHOD: is missing; write it before the path, such as match GET ${word}`
        : `PATH: is missing; write it after the method, such as match ${method} /reports/q3`,
    );
    return EXIT.usage;
  }
  if (!path.startsWith('/')) {
    io.err('PATH: does not start with a slash; write it as it stands in a request, such as /reports/q3');
    return EXIT.usage;
  }
  const loaded = await loadFor(args, io);
  if (!loaded.ok) return loaded.code;
  const { front } = loaded.config;
  if (!allowedMethods(front?.methods).has(method)) {
    io.err('METHOD: is one that the proxy refuses with 501; common ones are let in, others by proxy.methods');
    return EXIT.usage;
  }
  const routes = await readOfflineRoutes(loaded.config);
  if (!routes.ok) {
    io.err(routes.problem);
    return EXIT.away;
  }
  const explanation = explainMatch(compileOffline(loaded.config, routes.routes), {
    method,
    path,
    rules: matchRules(loaded.config),
    nowMs: Date.now(),
    offer: createOffers(receiversById(loaded.config)),
  });
  if (args.has('json')) io.out(JSON.stringify(toJson(explanation)));
  else for (const line of describe(method, path, explanation, loaded.config)) io.out(line);
  return explanation.answer.matched && !isRefused(explanation) ? EXIT.fine : EXIT.no;
}

/** Whether a path is refused. The interface counts refused paths as matched, because they are never free. */
function isRefused({ answer }: Explanation): boolean {
  return answer.ambiguous === true;
}

function toJson({ answer, path, reason, considered, sale }: Explanation): Record<string, unknown> {
  return {
    ...answer,
    plan: sale?.plan.id ?? null,
    path: path ?? null,
    reason,
    considered: considered.map(({ route, because }) => ({ route: toWire(route), because })),
  };
}

function describe(
  method: string,
  asked: string,
  explanation: Explanation,
  { proxy, decision }: Pick<LoadedConfig, 'proxy' | 'decision'>,
): string[] {
  const { answer, path, reason, considered } = explanation;
  const lines = [isRefused(explanation) ? reason : `${answer.matched ? 'matched' : 'not matched'}: ${reason}`];
  if (path !== undefined && path !== asked && (proxy !== undefined || decision === undefined))
    lines.push(`  goes upstream as ${method} ${path}`);
  if (path !== undefined && path !== asked.split('?', 1)[0] && decision !== undefined)
    lines.push(`  behind a proxy that asks (decision) it is refused with 400: only ${path} is let in`);
  for (const [name, value] of Object.entries(answer.params)) lines.push(`  ${name} = ${value}`);
  for (const { route, because } of considered) lines.push(`  ${describeRoute(route)}: ${because}`);
  return lines;
}

function describeRoute({ method, pattern, amount, currency, status }: Route): string {
  return `${method} ${pattern} ${amount} ${currency}${status === 'paused' ? ' (paused)' : ''}`;
}
