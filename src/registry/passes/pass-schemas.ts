// Schemas of the endpoints about passes: what was sold, under which terms, and what is left of it.
import { z } from 'zod';
import { PASS_KINDS, PASS_SCOPES } from '../../domain/selling/pass.ts';
import { documented, listQuery } from '../http/schemas.ts';

/** A pass is live as long as it can be used. */
export const PASS_STATES = ['live', 'used_up', 'ended', 'revoked'] as const;

const name = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, 'an id of 1 to 64 letters, digits, `_`, `.` and `-`');

export const passesQuery = z.object({
  limit: listQuery.shape.limit,
  cursor: listQuery.shape.cursor,
  plan: name.optional(),
  /** Id of a pass in its plan. */
  pass: name.optional(),
  payer: z
    .string()
    .regex(/^[\x21-\x7e]{1,64}$/, 'an account')
    .optional(),
  live: z
    .enum(['true', 'false'], 'true, false, or left out')
    .transform((text) => text === 'true')
    .optional(),
});

const time = z.iso.datetime();
/** Part of what a pass holds: uses, or money of its currency. Null: it holds seconds. */
const part = z.string().nullable();

export const passView = z.object({
  id: z.string(),
  /** The charge that paid for it. */
  charge_id: z.string(),
  status: z.enum(PASS_STATES),
  plan: z.string(),
  /** Id of its terms in the plan. */
  pass: z.string(),
  kind: z.enum(PASS_KINDS),
  /** Routes that it is good for: all of its plan, or `route_id` alone. */
  scope: z.enum(PASS_SCOPES),
  /** The route that it was bought on. */
  route_id: z.string(),
  payer: z.string(),
  /** Page of the network's explorer; null if it is not known. */
  payer_url: z.string().nullable(),
  network: z.string(),
  network_name: z.string().nullable(),
  /** Price of the sale. */
  amount: z.string(),
  currency: z.string(),
  /** Its life; null unless it holds seconds. */
  seconds: z.int().nullable(),
  sold: part,
  drawn: part,
  left: part,
  /** Held for requests that go on. */
  reserved: part,
  /** Amount that nobody can use any more. */
  lapsed: part,
  /** Requests that were charged to it; null if it holds seconds, which are not counted. */
  uses: z.int().nullable(),
  sold_at: time,
  ends_at: time,
  revoked_at: time.nullable(),
});
export type PassView = z.input<typeof passView>;

export const passList = z.object({ data: z.array(passView), next_cursor: z.string().nullable() });

documented.add(passView, {
  id: 'Pass',
  description:
    'A pass that was sold. `sold`, `drawn`, `left`, `reserved` and `lapsed` are uses, or decimals of its currency: `sold` is the sum of the others at any moment.',
});
documented.add(passList, { id: 'PassList' });
