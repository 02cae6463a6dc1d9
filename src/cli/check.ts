// `tollgate check`: everything that is wrong or odd about a configuration, without starting or creating anything.
import { formatListen } from '../config/addresses.ts';
import type { LoadedConfig } from '../config/config.ts';
import { findConfigFile, loadConfig } from '../config/load.ts';
import { configWarnings } from '../config/warnings.ts';
import type { Args } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { CONFIG_FLAG, NO_CONFIG, reportProblems } from './configuration.ts';

export const check: Command = {
  name: 'check',
  summary: 'say everything that is wrong with a configuration',
  usage: [
    'tollgate check [--config FILE] [--json]',
    '',
    'Prints each problem as file:line:column path: what is wrong, or ok and a summary.',
  ],
  flags: { ...CONFIG_FLAG, json: { help: 'print {ok, file, problems, warnings, summary}' } },
  words: { min: 0, max: 0 },
  run: async (args, io) => runCheck(args, io),
};

function runCheck(args: Args, io: Io): ExitCode {
  const file = findConfigFile(args.text('config'), io.env, io.folder);
  if (file === undefined) {
    for (const line of NO_CONFIG) io.err(line);
    return EXIT.usage;
  }
  const result = loadConfig(file, io.env, io.folder);
  const warnings = result.ok ? configWarnings(result.config) : [];
  const summary = result.ok ? summarize(result.config) : undefined;
  if (args.has('json')) {
    io.out(
      JSON.stringify({
        ok: result.ok,
        file,
        problems: result.ok ? [] : result.problems,
        warnings,
        summary: summary ?? null,
      }),
    );
  } else if (result.ok) {
    io.out('ok');
    for (const [name, value] of Object.entries(summary ?? {})) io.out(`  ${name}: ${value}`);
    for (const warning of warnings) io.err(`warning: ${warning}`);
  } else {
    reportProblems(result.problems, io.out);
  }
  return result.ok ? EXIT.fine : EXIT.usage;
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
