// `tollgate check`: everything that is wrong or odd about a configuration, without starting or creating anything. With
// `--online` it also asks the facilitators and nodes that the receivers name whether they can serve them.
import { formatListen } from '../config/addresses.ts';
import type { LoadedConfig } from '../config/config.ts';
import { findConfigFile, loadConfig } from '../config/load.ts';
import { configWarnings } from '../config/warnings.ts';
import { checkReceivers, type Finding } from '../gateway/rails/online-check.ts';
import { systemSchedule } from '../host/clock.ts';
import type { Args } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { CONFIG_FLAG, NO_CONFIG, reportProblems } from './configuration.ts';

export const check: Command = {
  name: 'check',
  summary: 'say everything that is wrong with a configuration',
  usage: [
    'tollgate check [--config FILE] [--online] [--json]',
    '',
    'Prints each problem as file:line:column path: what is wrong, or ok and a summary.',
    'With --online: exit code 1 where a receiver cannot be served, 69 where a service did not answer.',
  ],
  flags: {
    ...CONFIG_FLAG,
    online: { help: 'also ask the facilitators and nodes of every receiver' },
    json: { help: 'print {ok, file, problems, warnings, summary, online}' },
  },
  words: { min: 0, max: 0 },
  run: runCheck,
};

async function runCheck(args: Args, io: Io): Promise<ExitCode> {
  const file = findConfigFile(args.text('config'), io.env, io.folder);
  if (file === undefined) {
    for (const line of NO_CONFIG) io.err(line);
    return EXIT.usage;
  }
  const result = loadConfig(file, io.env, io.folder);
  const warnings = result.ok ? configWarnings(result.config) : [];
  const summary = result.ok ? summarize(result.config) : undefined;
  const online = result.ok && args.has('online') ? await askServices(result.config) : undefined;
  const code = result.ok ? codeOf(online ?? []) : EXIT.usage;
  if (args.has('json')) {
    io.out(
      JSON.stringify({
        ok: code === EXIT.fine,
        file,
        problems: result.ok ? [] : result.problems,
        warnings,
        summary: summary ?? null,
        ...(online === undefined ? {} : { online }),
      }),
    );
  } else if (result.ok) {
    io.out(code === EXIT.fine ? 'ok' : 'the file is in order; the services that it names are not');
    for (const [name, value] of Object.entries(summary ?? {})) io.out(`  ${name}: ${value}`);
    for (const { receiver, level, detail } of online ?? []) io.out(`  ${level}: receiver ${receiver}: ${detail}`);
    for (const warning of warnings) io.err(`warning: ${warning}`);
  } else {
    reportProblems(result.problems, io.out);
  }
  return code;
}

function askServices({ receivers, x402 }: LoadedConfig): Promise<readonly Finding[]> {
  return checkReceivers(receivers, { fetch, schedule: systemSchedule, v1: x402.v1 });
}

/** A receiver that cannot be served is a definite no, whatever else did not answer. */
function codeOf(findings: readonly Finding[]): ExitCode {
  if (findings.some(({ level }) => level === 'cannot_serve')) return EXIT.no;
  return findings.some(({ level }) => level === 'away') ? EXIT.away : EXIT.fine;
}

/** No secret, and nothing that could hold one. */
function summarize(config: LoadedConfig): Record<string, string> {
  const { proxy, registry, sync, admin, receivers } = config;
  return {
    shape: config.shape,
    ...(proxy ? { proxy: `${formatListen(proxy.listen)} -> ${proxy.upstream.origin}` } : {}),
    ...(registry ? { registry: `${formatListen(registry.listen)}, store ${registry.store.file}` } : {}),
    ...(sync ? { sync: `${new URL(sync.registryUrl).origin}, snapshot ${sync.snapshotFile}` } : {}),
    admin: formatListen(admin.listen),
    receivers: receivers.map(({ id, network }) => `${id} (${network})`).join(', ') || 'none',
    routes: `${config.routes.length} in this file`,
    secrets:
      registry && (!registry.jwt || !registry.apiKeys || !config.charges.secrets)
        ? 'the first start makes those that are missing'
        : 'configured',
  };
}
