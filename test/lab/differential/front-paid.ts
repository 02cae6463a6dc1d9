// A real Tollgate, all in one process, in front of the upstream, with a facilitator that believes everybody, after a while:
// bodies come in while the payment is looked at. Every request is paid for, with a payment of its own.
import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { makeUpPayment, readTerms } from '../../support/made-up-payment.ts';
import { startProcess, temporaryFolder } from '../../support/process.ts';
import type { FrontKind } from './fronts.ts';
import { createRandom } from './random.ts';

export const PAID: FrontKind = {
  name: 'paid',
  draws: {
    methods: ['POST', 'POST', 'POST', 'PUT', 'PATCH', 'GET', 'HEAD'],
    // A server error after settling is a charge that is fetched again: another story.
    statuses: [200, 200, 200, 201, 204, 400, 404],
  },
  start: async (upstream) => {
    const files = temporaryFolder();
    const facilitator = await startFacilitator();
    const { port } = facilitator.address() as AddressInfo;
    const config = files.write(
      'tollgate.yaml',
      [
        `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.origin}, timeouts: { drain_delay: 0s, drain: 1s } }`,
        'registry: { listen: 127.0.0.1:0, store: sqlite:tollgate.db }',
        'admin: { listen: 127.0.0.1:0 }',
        `receivers: [{ id: default, network: base-sepolia, pay_to_address: "0x${'1'.repeat(40)}", facilitators: [http://127.0.0.1:${port}], rpc_url: http://127.0.0.1:1 }]`,
        'routes: [{ route_pattern: "/paid/*", method: "*", amount: "0.10" }]',
        'log: { access: false }',
      ].join('\n'),
    );
    const tollgate = await startProcess({ args: ['serve', '-c', config], listeners: ['proxy', 'registry', 'admin'] });
    return {
      port: tollgate.port('proxy'),
      target: (token) => `/paid/${token}`,
      lines: async ({ token, method }) => {
        const quoted = await fetch(`${tollgate.url('proxy')}/paid/${token}`, { method });
        await quoted.arrayBuffer();
        const terms = readTerms(quoted.headers.get('payment-required') ?? '');
        return [`PAYMENT-SIGNATURE: ${makeUpPayment(terms, Date.now())}`];
      },
      expected: { failureStatus: 502, passes: [103] },
      close: async () => {
        await tollgate.kill();
        facilitator.closeAllConnections();
        await new Promise((resolve) => facilitator.close(resolve));
        files.remove();
      },
    };
  },
};

const KINDS = [{ x402Version: 2, scheme: 'exact', network: 'eip155:84532' }];

async function startFacilitator(): Promise<Server> {
  const random = createRandom(1);
  const server = createServer((req, res) => {
    let text = '';
    req.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    req.on('end', () => {
      res.setHeader('content-type', 'application/json');
      // A start asks what the facilitator takes.
      if (req.url === '/supported') return res.end(JSON.stringify({ kinds: KINDS }));
      const { payer, network } = readCall(text);
      const body =
        req.url === '/settle'
          ? { success: true, transaction: `0x${randomBytes(32).toString('hex')}`, network, payer }
          : { isValid: true, payer };
      return setTimeout(() => res.end(JSON.stringify(body)), random.below(15));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

type Call = {
  readonly paymentPayload: { readonly payload: { readonly authorization: { readonly from: string } } };
  readonly paymentRequirements: { readonly network: string };
};

function readCall(text: string): { payer: string; network: string } {
  const { paymentPayload, paymentRequirements } = JSON.parse(text) as Call;
  return { payer: paymentPayload.payload.authorization.from, network: paymentRequirements.network };
}
