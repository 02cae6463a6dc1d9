// Schemas of the endpoints about receivers.
import { z } from 'zod';
import { FACILITATOR_STATUSES, NODE_STATUSES } from '../../domain/payment/service-health.ts';
import { documented } from '../http/schemas.ts';
import { FINDING_LEVELS } from './receiver-services.ts';

const facilitatorView = z.object({
  host: z.string(),
  auth: z.enum(['bearer', 'cdp', 'payai']).nullable(),
  status: z.enum(FACILITATOR_STATUSES),
  since: z.iso.datetime().nullable(),
  last_error: z.string().nullable(),
  p50_ms: z.number().nullable(),
});

const wayView = z.object({
  scheme: z.string(),
  network: z.string(),
  network_name: z.string().nullable(),
  testnet: z.boolean().nullable(),
  asset: z.string(),
  symbol: z.string().nullable(),
  decimals: z.int(),
  pay_to_address: z.string(),
  address_url: z.string().nullable(),
  facilitators: z.array(facilitatorView),
  rpc: z.object({ host: z.string(), status: z.enum(NODE_STATUSES) }).nullable(),
});

const receiverView = z.object({
  id: z.string(),
  ways: z.array(wayView),
  currencies: z.array(z.string()),
  routes: z.int(),
});
export type ShownReceiver = z.output<typeof receiverView>;

export const receiverList = z.object({ data: z.array(receiverView) });
export const receiverParams = z.object({ id: z.string().min(1).max(64) });
export const receiverCheck = z.object({
  ok: z.boolean(),
  findings: z.array(z.object({ level: z.enum(FINDING_LEVELS), detail: z.string() })),
  checked_at: z.iso.datetime(),
});
export type ReceiverCheck = z.output<typeof receiverCheck>;

documented.add(receiverView, {
  id: 'Receiver',
  description:
    'Facilitators and nodes are named by their host alone. `testnet` is null if it is not known. `last_error` says why the last call failed and `since` when that began; `p50_ms` is the median of the last answers.',
});
documented.add(receiverList, { id: 'ReceiverList' });
documented.add(receiverCheck, {
  id: 'ReceiverCheck',
  description:
    'What `tollgate check --online` finds. `ok` is false if a payment could be refused, or a service is away.',
});
