// Checks that the upstream accepts a connection. No request is sent: an API may do work for any.
import { connect, isIP } from 'node:net';
import { connect as connectSecure } from 'node:tls';
import type { ProxyConfig } from '../config/config.ts';

/** Resolves with a sentence if it does not, else with undefined. */
export function reachUpstream({
  upstream,
  timeouts,
}: Pick<ProxyConfig, 'upstream' | 'timeouts'>): Promise<string | undefined> {
  const { host, port, protocol, origin } = upstream;
  return new Promise((resolve) => {
    const name = isIP(host) === 0 ? { servername: host } : {};
    const socket = protocol === 'https' ? connectSecure({ host, port, ...name }) : connect({ host, port });
    const end = (sentence?: string): void => {
      socket.destroy();
      resolve(sentence);
    };
    // No caller waits for this: the process may end meanwhile.
    socket.unref();
    socket.setTimeout(timeouts.connectMs, () => end(`the upstream ${origin} did not answer in time`));
    socket.once(protocol === 'https' ? 'secureConnect' : 'connect', () => end());
    socket.once('error', (error: NodeJS.ErrnoException) => end(whyNot(origin, error)));
  });
}

function whyNot(origin: string, error: NodeJS.ErrnoException): string {
  const { code = 'unknown error' } = error;
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG' || code === 'EPROTO') {
    return `the upstream ${origin} is written with https and does not speak TLS; write http`;
  }
  if (/CERT|SELF_SIGNED|ISSUER|LEAF|ALTNAME/.test(code)) {
    return `the certificate of the upstream ${origin} is not trusted (${code}); name its authority with NODE_EXTRA_CA_CERTS`;
  }
  return `the upstream ${origin} takes no connection (${code})`;
}
