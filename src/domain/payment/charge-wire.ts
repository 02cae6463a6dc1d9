// Charges between a sidecar and the ledger of its registry, as JSON. Both ends validate with these schemas. Only here
// are names of the wire turned into the code's and back. Integers of money and of the chain's time are decimal strings.
// Holds credentials and kept answers: for the scope `ledger` alone, never for a dashboard.
import { z } from 'zod';
import { CHARGE_ID, type Charge, type Claim, type Asks, type KeptAnswer, type Proof } from './charge.ts';
import { chargeValuesFromWire, chargeValuesToWire } from './charge-fields.ts';
import { chargeValuesShape } from './charge-shapes.ts';
import type { Way } from './way.ts';

/** Of a kept answer's body, and of its headers together, that may cross. */
export const ANSWER_BYTES = 64 * 1024;
const HEADER_CHARACTERS = 32 * 1024;
const CREDENTIAL_CHARACTERS = 16 * 1024;
const PATH_CHARACTERS = 64 * 1024;

export const text = (max: number) => z.string().min(1).max(max);
const uint = z.string().regex(/^(0|[1-9]\d{0,77})$/, 'an unsigned integer, in decimal');
export const sha256 = z.string().regex(/^[0-9a-f]{64}$/, '64 lower-case hex digits');
const count = z.int().min(0);

export const chargeId = z.string().regex(CHARGE_ID, 'a charge id');

export const paymentWire = z.object({ network: text(64), asset: text(64), payer: text(64), unique: text(80) });

/** Written and read by a rail alone: bounded. */
export const railWire = z
  .record(z.string().max(64), z.string().max(256))
  .refine((all) => Object.keys(all).length <= 32, 'too many members');

const wayWire = z.object({
  receiver_id: text(64),
  network: text(64),
  scheme: text(32),
  asset: text(64),
  asset_decimals: z.int().min(0).max(255),
  pay_to_address: text(64),
  max_timeout_seconds: count,
  terms: railWire,
});

export const proofWire = z.object({
  transaction: text(128),
  log_index: count.nullable(),
  amount: uint,
  payer: text(64),
});

export const answerWire = z.object({
  status: z.int().min(200).max(599),
  headers: z
    .array(z.string())
    .max(2000)
    .refine((all) => all.length % 2 === 0, 'name, value pairs')
    .refine((all) => all.reduce((sum, each) => sum + each.length, 0) <= HEADER_CHARACTERS, 'too long'),
  /** Base64. */
  body: z.base64().max(Math.ceil(ANSWER_BYTES / 3) * 4),
});

const claimFields = {
  charge_id: chargeId,
  payment: paymentWire,
  credential_sha256: sha256,
  x402_version: z.literal([1, 2]),
  way: wayWire,
  amount: uint,
  /** Seconds since the epoch. */
  deadline: uint.nullable(),
  route: z.object({ id: text(64), method: text(32), pattern: text(512) }),
  request: z.object({ method: text(32), path: text(PATH_CHARACTERS), target_sha256: sha256 }),
  request_id: text(256).nullable(),
  price: z.object({ amount: text(40), currency: text(10) }),
  customer_id: text(128).nullable(),
  settle: z.enum(['before_response', 'before_forward']),
};

export const claimWire = z.object({ ...claimFields, credential: text(CREDENTIAL_CHARACTERS) });
type ClaimWire = z.infer<typeof claimWire>;
type ClaimFields = Omit<Claim, 'credential'>;
type ClaimFieldsWire = Omit<ClaimWire, 'credential'>;

export const chargeWire = z.object({
  ...claimFields,
  ...chargeValuesShape,
  credential: z.string().nullable(),
  search: railWire.nullable(),
  proof: proofWire.nullable(),
  asks: z.object({
    all: count,
    after_lost_answer: count,
    after_failure: count,
    after_upload: count,
    after_death: count,
  }),
  answer: answerWire.nullable(),
});
type ChargeWire = z.infer<typeof chargeWire>;

/** It may have faults that its schema does not see; the ledger refuses them. */
export function claimFromWire(wire: ClaimWire): Claim {
  return fieldsFromWire(wire, { credential: wire.credential });
}

export function claimToWire(claim: Claim): ClaimWire {
  return fieldsToWire(claim, { credential: claim.credential });
}

export function chargeFromWire(wire: ChargeWire): Charge {
  return fieldsFromWire(wire, {
    ...chargeValuesFromWire(wire),
    credential: wire.credential,
    search: wire.search,
    proof: wire.proof && proofFromWire(wire.proof),
    asks: asksFromWire(wire.asks),
    answer: wire.answer && answerFromWire(wire.answer),
  });
}

export function chargeToWire(charge: Charge): ChargeWire {
  return fieldsToWire(charge, {
    ...chargeValuesToWire(charge),
    credential: charge.credential,
    search: charge.search,
    proof: charge.proof && proofToWire(charge.proof),
    asks: asksToWire(charge.asks),
    answer: charge.answer && answerToWire(charge.answer),
  });
}

/** What a claim fixes, and `others`. */
function fieldsFromWire<T extends object>(wire: ClaimFieldsWire, others: T): T & ClaimFields {
  return {
    ...others,
    id: wire.charge_id,
    payment: wire.payment,
    credentialSha256: wire.credential_sha256,
    x402Version: wire.x402_version,
    way: wayFromWire(wire.way),
    amount: BigInt(wire.amount),
    deadline: wire.deadline === null ? null : BigInt(wire.deadline),
    route: wire.route,
    request: {
      method: wire.request.method,
      path: wire.request.path,
      targetSha256: wire.request.target_sha256,
    },
    requestId: wire.request_id,
    price: wire.price,
    customerId: wire.customer_id,
    settle: wire.settle,
  };
}

function fieldsToWire<T extends object>(claim: ClaimFields, others: T): T & ClaimFieldsWire {
  return {
    ...others,
    charge_id: claim.id,
    payment: claim.payment,
    credential_sha256: claim.credentialSha256,
    x402_version: claim.x402Version,
    way: wayToWire(claim.way),
    amount: claim.amount.toString(),
    deadline: claim.deadline?.toString() ?? null,
    route: claim.route,
    request: {
      method: claim.request.method,
      path: claim.request.path,
      target_sha256: claim.request.targetSha256,
    },
    request_id: claim.requestId,
    price: claim.price,
    customer_id: claim.customerId,
    settle: claim.settle,
  };
}

function wayFromWire(wire: z.infer<typeof wayWire>): Way {
  const { receiver_id: receiverId, network, scheme, asset, asset_decimals: decimals, terms } = wire;
  return {
    ...{ receiverId, network, scheme, asset, decimals, terms },
    payTo: wire.pay_to_address,
    timeoutSeconds: wire.max_timeout_seconds,
  };
}

function wayToWire(way: Way): z.infer<typeof wayWire> {
  const { receiverId: receiver_id, network, scheme, asset, decimals: asset_decimals, terms } = way;
  return {
    ...{ receiver_id, network, scheme, asset, asset_decimals, terms },
    pay_to_address: way.payTo,
    max_timeout_seconds: way.timeoutSeconds,
  };
}

function asksFromWire(wire: ChargeWire['asks']): Asks {
  return {
    all: wire.all,
    afterLostAnswer: wire.after_lost_answer,
    afterFailure: wire.after_failure,
    afterUpload: wire.after_upload,
    afterDeath: wire.after_death,
  };
}

function asksToWire(asks: Asks): ChargeWire['asks'] {
  return {
    all: asks.all,
    after_lost_answer: asks.afterLostAnswer,
    after_failure: asks.afterFailure,
    after_upload: asks.afterUpload,
    after_death: asks.afterDeath,
  };
}

export function proofFromWire({ transaction, log_index, amount, payer }: z.infer<typeof proofWire>): Proof {
  return { transaction, logIndex: log_index, amount: BigInt(amount), payer };
}

export function proofToWire({ transaction, logIndex, amount, payer }: Proof): z.infer<typeof proofWire> {
  return { transaction, log_index: logIndex, amount: amount.toString(), payer };
}

export function answerFromWire({ status, headers, body }: z.infer<typeof answerWire>): KeptAnswer {
  return { status, headers, body: Buffer.from(body, 'base64') };
}

export function answerToWire({ status, headers, body }: KeptAnswer): z.infer<typeof answerWire> {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return { status, headers: [...headers], body: bytes.toString('base64') };
}
