// The wire cases, whole and byte by byte, against the forwarding half of the data plane (support/small-gateway.ts) and
// against the whole program in front of the same upstream.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { startRawUpstream, type RawUpstream } from '../support/raw-upstream.ts';
import { startSmallGateway, type SmallGateway } from '../support/small-gateway.ts';
import { echoAnswer, runWireCase } from './run-wire-cases.ts';
import { WIRE_CASES } from './wire-cases.ts';

const CASES = (['whole', 'trickled'] as const).flatMap((how) =>
  WIRE_CASES.map((wire) => [`${wire.id} ${wire.name}, sent ${how}`, wire, how] as const),
);

const startUpstream = (): Promise<RawUpstream> =>
  startRawUpstream(({ method, target }, socket) => void socket.write(echoAnswer(method, target)));

describe('forwarding', () => {
  let upstream: RawUpstream;
  let gateway: SmallGateway;

  beforeAll(async () => {
    upstream = await startUpstream();
    gateway = await startSmallGateway({ upstream: upstream.url });
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  it.each(CASES)('attack: %s', async (_, wire, how) => {
    await runWireCase(gateway.port, upstream, wire, how);
  });

  it('attack: the upstream never saw more requests than were forwarded', () => {
    expect(gateway.forwards()).toBeGreaterThan(WIRE_CASES.length);
    expect(upstream.requests.length).toBeLessThanOrEqual(gateway.forwards());
  });
});

describe('the whole program', () => {
  const files = temporaryFolder();
  let upstream: RawUpstream;
  let tollgate: TollgateProcess;

  beforeAll(async () => {
    upstream = await startUpstream();
    const config = files.write(
      'tollgate.yaml',
      `
proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url.origin}, timeouts: { drain_delay: 0s } }
registry: { listen: 127.0.0.1:0, store: sqlite:data/tollgate.db }
admin: { listen: 127.0.0.1:0 }
receivers:
  - { id: default, network: base-sepolia, pay_to_address: "0x1111111111111111111111111111111111111111", facilitators: [http://127.0.0.1:1] }
routes:
  - { route_pattern: /v1/export, amount: "0.10" }
`,
    );
    tollgate = await startProcess({ args: ['serve', '-c', config], listeners: ['proxy', 'registry', 'admin'] });
  });
  afterAll(async () => {
    await tollgate?.kill();
    await upstream?.close();
    files.remove();
  });

  it.each(CASES)('attack: %s', async (_, wire, how) => {
    await runWireCase(tollgate.port('proxy'), upstream, wire, how);
  });

  it('attack: nothing that costs something was ever asked of the upstream', () => {
    expect(upstream.requests.length).toBeGreaterThan(WIRE_CASES.length);
    expect(upstream.requests.filter(({ target }) => target.includes('export'))).toEqual([]);
  });
});
