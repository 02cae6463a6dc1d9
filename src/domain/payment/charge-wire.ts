// Charges between a sidecar and the ledger of its registry, as JSON. Both ends validate with these schemas. Names of the
// wire are turned into the code's and back by the rows of `charge-fields.ts`. Integers of money and of the chain's time
// are decimal strings. Holds credentials and kept answers: for the scope `ledger` alone, never for a dashboard.
import { z } from 'zod';
import type { Charge, Claim, KeptAnswer, Proof } from './charge.ts';
import { createCopy, isChargeSource, type CopyRules, type ChargeSource } from './charge-copy.ts';
import {
  CLAIM_ROWS,
  PROGRESS_ROWS,
  type ChargeRow,
  type ClaimValuesWire,
  type ProgressPartWire,
  type ProgressValuesWire,
} from './charge-fields.ts';
import { claimShape, partSchema, progressShape, text } from './charge-shapes.ts';

const CREDENTIAL_CHARACTERS = 16 * 1024;

type ClaimWire = ClaimValuesWire & { credential: string };
type ChargeWire = ClaimValuesWire & ProgressValuesWire;

export const claimWire = z.object({ ...claimShape, credential: text(CREDENTIAL_CHARACTERS) });
export const chargeWire = z.object({ ...claimShape, ...progressShape });

const FROM_WIRE: CopyRules = { partOf: memberOf, valueOf: (row, wire) => decode(row, wire[row.wire]) };
const TO_WIRE: CopyRules = { partOf: memberOf, valueOf: ({ member }, charge) => encode(charge[member]) };
// The progress of a claim goes first on the wire.
const ROWS = [...PROGRESS_ROWS, ...CLAIM_ROWS];
const readClaim = createCopy(CLAIM_ROWS, 'member', FROM_WIRE);
const writeClaim = createCopy(CLAIM_ROWS, 'wire', TO_WIRE);
const readCharge = createCopy(ROWS, 'member', FROM_WIRE);
const writeCharge = createCopy(ROWS, 'wire', TO_WIRE);

/** The claim may have faults that its schema does not see; the ledger refuses them. */
export function claimFromWire(wire: ClaimWire): Claim {
  return { credential: wire.credential, ...readClaim(wire) } as Claim;
}

export function claimToWire(claim: Claim): ClaimWire {
  return { credential: claim.credential, ...writeClaim(claim) } as ClaimWire;
}

export function chargeFromWire(wire: ChargeWire): Charge {
  return readCharge(wire) as Charge;
}

export function chargeToWire(charge: Charge): ChargeWire {
  return writeCharge(charge) as ChargeWire;
}

/** The schema of a part that an event carries as well, and both copies of it. */
function partCodec<Value extends ChargeSource, Wire extends ChargeSource>(part: 'proof' | 'answer') {
  const rows = PROGRESS_ROWS.flatMap((row): ChargeRow[] => (row.part === part ? [{ ...row, part: undefined }] : []));
  const read = createCopy(rows, 'member', FROM_WIRE);
  const write = createCopy(rows, 'wire', TO_WIRE);
  return {
    schema: partSchema(part),
    fromWire: (wire: Wire) => read(wire) as Value,
    toWire: (value: Value) => write(value) as Wire,
  };
}

export const proofCodec = partCodec<Proof, ProgressPartWire<'proof'>>('proof');
export const answerCodec = partCodec<KeptAnswer, ProgressPartWire<'answer'>>('answer');

function memberOf(source: ChargeSource, part: string): ChargeSource | null {
  const value = source[part];
  return isChargeSource(value) ? value : null;
}

function decode({ kind }: ChargeRow, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (kind === 'units' || kind === 'seconds') return BigInt(value);
  return kind === 'bytes' ? Buffer.from(value, 'base64') : value;
}

function encode(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Uint8Array)
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  return value;
}
