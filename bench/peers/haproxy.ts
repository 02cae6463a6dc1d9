// haproxy, where it is installed: one thread, connections to the upstream kept alive and shared, and the forwarding headers
// that Tollgate sets too.
import { mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { SERVER_CORE, startSilent, type Server } from '../process.ts';
import { freePort } from './free-port.ts';

export async function startHaproxy(upstreamPort: number, folder: string): Promise<Server> {
  const own = mkdtempSync(path.join(folder, 'haproxy-'));
  const port = await freePort();
  const file = path.join(own, 'haproxy.cfg');
  writeFileSync(file, configuration(port, upstreamPort));
  return startSilent({ name: 'haproxy', file: 'haproxy', args: ['-db', '-f', file], core: SERVER_CORE }, port);
}

function configuration(port: number, upstreamPort: number): string {
  return `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  option http-keep-alive
  http-reuse always
  timeout connect 5s
  timeout client 300s
  timeout server 300s
frontend front
  bind 127.0.0.1:${port}
  unique-id-format %{+X}o\\ %ci:%cp_%fi:%fp_%Ts_%rt:%pid
  unique-id-header X-Request-Id
  option forwardfor
  http-request set-header X-Forwarded-Proto http
  http-request set-header X-Forwarded-Host %[req.hdr(Host)]
  default_backend api
backend api
  server api 127.0.0.1:${upstreamPort} maxconn 1000 pool-max-conn 256
`;
}
