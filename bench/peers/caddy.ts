// Caddy with its own `forward_auth`, where it is installed: it asks a constant answer whether a request may pass, and forwards it.
// What it takes is what a question costs the proxy that asks, whoever answers.
import { mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { SERVER_CORE, startSilent, type Server } from '../process.ts';
import { freePort } from './free-port.ts';

type CaddyOptions = { readonly folder: string; readonly upstreamPort: number; readonly decisionPort: number };

export async function startCaddy({ folder, upstreamPort, decisionPort }: CaddyOptions): Promise<Server> {
  const own = mkdtempSync(path.join(folder, 'caddy-'));
  const port = await freePort();
  const file = path.join(own, 'Caddyfile');
  writeFileSync(file, configuration(port, upstreamPort, decisionPort));
  const args = ['run', '--config', file, '--adapter', 'caddyfile'];
  return startSilent({ name: 'caddy', file: 'caddy', args, core: SERVER_CORE, folder: own }, port);
}

function configuration(port: number, upstreamPort: number, decisionPort: number): string {
  return `{
  admin off
  auto_https off
}
http://:${port} {
  bind 127.0.0.1
  forward_auth 127.0.0.1:${decisionPort} {
    uri /
  }
  reverse_proxy 127.0.0.1:${upstreamPort}
}
`;
}
