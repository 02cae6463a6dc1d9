// `tollgate openapi`: prints the OpenAPI 3.1 document of the interface, as a registry serves it. With `--public` it
// prints the document of the operations for sale, as the proxy serves it.
import { makePublication, publishingOf } from '../compose/discovery/publication.ts';
import { readDiscovery } from '../compose/discovery/discovery.ts';
import { formatListen } from '../config/addresses.ts';
import { renderPublication } from '../domain/discovery/publication.ts';
import type { Args } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { CONFIG_FLAG, loadFor } from './configuration.ts';
import { compileOffline, readOfflineRoutes } from './offline-routes.ts';

export const openapi: Command = {
  name: 'openapi',
  summary: 'print the OpenAPI document of the registry, or of what is sold',
  usage: [
    'tollgate openapi [--public [--config FILE]]',
    '',
    'With --public: /openapi.json of the proxy, as a start with this file would serve it. Needs no running server.',
  ],
  examples: ['tollgate openapi > registry.json', 'tollgate openapi --public --config tollgate.yaml'],
  flags: { ...CONFIG_FLAG, public: { help: 'print what the proxy tells everybody of what it sells' } },
  words: { min: 0, max: 0 },
  run: async (args, io) => {
    if (args.has('public')) return printPublic(args, io);
    const [{ API }, { describeApi }] = await Promise.all([
      import('../registry/api.ts'),
      import('../registry/http/openapi-document.ts'),
    ]);
    io.out(JSON.stringify(describeApi(API, io.version), undefined, 2));
    return EXIT.fine;
  },
};

async function printPublic(args: Args, io: Io): Promise<ExitCode> {
  const loaded = await loadFor(args, io);
  if (!loaded.ok) return loaded.code;
  const { config } = loaded;
  const publishing = publishingOf(config);
  if (publishing === undefined) {
    io.err('Nothing is told of what is sold: write a section `discovery:` beside `proxy:`, without `serve: false`.');
    return EXIT.usage;
  }
  const routes = await readOfflineRoutes(config);
  if (!routes.ok) {
    io.err(
      config.registry === undefined ? `${routes.problem} A running sidecar serves /openapi.json.` : routes.problem,
    );
    return EXIT.away;
  }
  const read = await readDiscovery(config);
  for (const remark of read?.remarks ?? []) io.err(`warning: ${remark}`);
  const { publication } = await makePublication(
    publishing,
    read?.description?.owner,
    compileOffline(config, routes.routes),
  );
  const { publicUrl, listen } = publishing.proxy;
  const { openapi: text } = renderPublication(publication, publicUrl ?? `http://${formatListen(listen)}`);
  io.out(JSON.stringify(JSON.parse(text), undefined, 2));
  return EXIT.fine;
}
