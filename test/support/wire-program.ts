// The whole program as a process of its own in front of a strict upstream, with one protected route: what the wire cases
// need of it, on whatever Node it runs.
import path from 'node:path';
import { expect } from 'vitest';
import { startProcess, temporaryFolder } from './process.ts';
import { createTokens, startTokenUpstream, type TokenUpstream } from './wire-lab.ts';

export type WireProgram = {
  readonly front: { readonly port: number; readonly witness: TokenUpstream; readonly token: () => string };
  /** The upstream saw what was forwarded, but for at most `broken` requests, and nothing that costs something. */
  readonly check: (broken: number) => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** Installed on demand, in a folder and with a lock file of its own. */
export const NODE_24 = path.resolve(import.meta.dirname, '../lab/node24/node_modules/.bin/node');

export async function startWireProgram(node?: string): Promise<WireProgram> {
  const files = temporaryFolder();
  const witness = await startTokenUpstream();
  const { upstream } = witness;
  const config = files.write(
    'tollgate.yaml',
    `
proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url.origin}, timeouts: { drain_delay: 0s } }
registry: { listen: 127.0.0.1:0, store: sqlite:data/tollgate.db }
admin: { listen: 127.0.0.1:0 }
receivers:
  - { id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x1111111111111111111111111111111111111111", facilitators: [http://127.0.0.1:1] }
routes:
  - { route_pattern: /v1/export, method: "*", amount: "0.10" }
`,
  );
  const tollgate = await startProcess({
    args: ['serve', '-c', config],
    listeners: ['proxy', 'registry', 'admin'],
    ...(node === undefined ? {} : { node }),
  });
  return {
    front: { port: tollgate.port('proxy'), witness, token: createTokens() },
    check: async (broken) => {
      expect(upstream.violations).toEqual([]);
      expect(upstream.requests.filter(({ target }) => target.includes('export'))).toEqual([]);
      const metrics = await (await fetch(`${tollgate.url('admin')}/metrics`)).text();
      let forwarded = 0;
      for (const [, outcome, count] of metrics.matchAll(/^tollgate_requests_total\{outcome="(\w+)".*\} (\d+)$/gm))
        if (outcome === 'free' || outcome === 'error') forwarded += Number(count);
      expect(witness.total()).toBeLessThanOrEqual(forwarded);
      expect(witness.total()).toBeGreaterThanOrEqual(forwarded - broken);
      expect(witness.total()).toBeGreaterThan(500);
    },
    stop: async () => {
      await tollgate.kill();
      await upstream.close();
      files.remove();
    },
  };
}
