// nginx, where it is installed: one process without workers, so that its CPU is one number. A proxy_pass with kept-alive
// connections and the forwarding headers that Tollgate sets too; bodies are streamed, not stored. Beside it a server that
// answers every request with the bytes of a 402.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { SERVER_CORE, startSilent, type Server } from '../process.ts';
import type { ConstantAnswer } from './constant.ts';
import { freePort } from './free-port.ts';

export type NginxOptions = {
  /** Where its configuration and pid file are put. */
  readonly folder: string;
  readonly serves: { readonly upstreamPort: number } | { readonly answer: ConstantAnswer };
};

export async function startNginx({ folder, serves }: NginxOptions): Promise<Server> {
  const own = mkdtempSync(path.join(folder, 'nginx-'));
  mkdirSync(path.join(own, 'tmp'));
  const port = await freePort();
  const file = path.join(own, 'nginx.conf');
  writeFileSync(file, configuration(port, serves));
  return startSilent(
    {
      name: 'nginx',
      file: 'nginx',
      args: ['-p', own, '-c', file, '-e', path.join(own, 'error.log')],
      core: SERVER_CORE,
    },
    port,
  );
}

function configuration(port: number, serves: NginxOptions['serves']): string {
  return `daemon off;
master_process off;
worker_processes 1;
pid nginx.pid;
error_log error.log error;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path tmp/body;
  proxy_temp_path tmp/proxy;
  fastcgi_temp_path tmp/fastcgi;
  uwsgi_temp_path tmp/uwsgi;
  scgi_temp_path tmp/scgi;
  keepalive_requests 100000000;
  client_max_body_size 0;
  ${'answer' in serves ? answering(port, serves.answer) : proxying(port, serves.upstreamPort)}
}
`;
}

function proxying(port: number, upstreamPort: number): string {
  return `upstream api {
    server 127.0.0.1:${upstreamPort};
    keepalive 256;
    keepalive_requests 100000000;
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://api;
      proxy_http_version 1.1;
      proxy_request_buffering off;
      proxy_max_temp_file_size 0;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host $host;
      proxy_set_header X-Request-Id $request_id;
    }
  }`;
}

/** nginx reads \`$\` and quotes inside strings; what our 402 holds has neither but in JSON's own double quotes. */
function answering(port: number, { status, headers, body }: ConstantAnswer): string {
  const fields = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() !== 'content-type')
      fields.push(`add_header ${headers[i]} '${headers[i + 1]}' always;`);
  }
  return `server {
    listen 127.0.0.1:${port};
    location / {
      default_type application/json;
      ${fields.join('\n      ')}
      return ${status} '${body}';
    }
  }`;
}
