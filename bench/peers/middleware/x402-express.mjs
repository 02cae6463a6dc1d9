// The reference middleware of the x402 project, protecting the paths that the file names (a JSON array); its facilitator is
// a stub in this process, asked once at the start. `node x402-express.mjs FILE PAY_TO`.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import express from 'express';
import { paymentMiddleware, x402ResourceServer } from '@x402/express';
import { ExactEvmScheme } from '@x402/evm/exact/server';
import { announce } from './announce.mjs';

const NETWORK = 'eip155:84532';
const facilitator = {
  getSupported: async () => ({
    kinds: [{ x402Version: 2, scheme: 'exact', network: NETWORK }],
    extensions: [],
    signers: {},
  }),
  verify: async () => ({ isValid: false }),
  settle: async () => ({ success: false }),
};

const [file, payTo] = process.argv.slice(2);
const accepts = { scheme: 'exact', price: '$0.01', network: NETWORK, payTo };
const routes = Object.fromEntries(
  JSON.parse(readFileSync(file, 'utf8')).map((path) => [`GET ${path}`, { accepts, description: `Bench ${path}` }]),
);
const app = express();
app.use(paymentMiddleware(routes, new x402ResourceServer(facilitator).register(NETWORK, new ExactEvmScheme())));
app.use((_req, res) => res.json({ paid: true }));
announce(createServer(app));
