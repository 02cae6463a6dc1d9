// Tokens of passes: what a client presents for what it bought. A token names the pass and is signed with `charges.secrets`, of
// which all verify, so that replicas and sidecars agree and a rotation breaks none that still lives. A pass by seconds needs
// nothing else: its end, its plan and its scope stand in the token. `pass_`, then base64url of
//   0 kind and scope | 1 key id | 2 end, seconds (4) | 6 plan (8) | 14 the charge id | MAC (16)
// No text of a charge id, which logs show, stands in the text of a token: its bytes do not begin at a character's edge.
import { createHmac, createSecretKey, hash, timingSafeEqual, type KeyObject } from 'node:crypto';
import type { Price } from '../payment/money.ts';
import { priceIn, routeIdIn } from '../payment/quote.ts';
import { passIdOf, type PassMeasure, type SoldPass } from './pass.ts';

/** A pass as its token tells it. */
export type TokenPass = {
  readonly passId: string;
  readonly kind: PassMeasure['kind'];
  readonly endsAtMs: number;
  /** The route that it is good for; undefined: all routes of its plan. */
  readonly routeId: string | undefined;
  /** Price of the sale. */
  readonly price: Price;
  /** Mark of its plan (`markOfPlan`). */
  readonly planMark: string;
};

export type PassTokens = {
  readonly write: (pass: SoldPass) => string;
  /** Undefined: it is signed with no secret that is known here. */
  readonly read: (token: string) => TokenPass | undefined;
};

/** The form of a token. */
export const PASS_TOKEN = /^pass_[A-Za-z0-9_-]{1,155}$/;
const PREFIX = 'pass_';
const CHARGE_PREFIX = 'chg_';
const HEAD = 14;
const MAC = 16;
const KINDS = ['seconds', 'uses', 'credit'] as const;
const VERSION = 0x10;
/** Bit of the first byte: the pass is good for one route alone. */
const ROUTE = 0x08;

type Key = { readonly id: number; readonly secret: KeyObject };

export function createPassTokens(secrets: readonly string[]): PassTokens {
  const keys = secrets.map(deriveKey);
  const [signer] = keys;
  if (signer === undefined) throw new Error('charges.secrets is empty: passes need a secret to be signed with');
  const mac = ({ secret }: Key, signed: Buffer): Buffer =>
    createHmac('sha256', secret).update(signed).digest().subarray(0, MAC);
  return {
    write: ({ chargeId, kind, scope, endsAtMs, planId }) => {
      const charge = Buffer.from(chargeId.slice(CHARGE_PREFIX.length), 'base64url');
      const head = Buffer.alloc(HEAD);
      head[0] = VERSION | KINDS.indexOf(kind) | (scope === 'route' ? ROUTE : 0);
      head[1] = signer.id;
      head.writeUInt32BE(Math.ceil(endsAtMs / 1000), 2);
      head.write(markOfPlan(planId), 6, 'latin1');
      const signed = Buffer.concat([head, charge]);
      return PREFIX + Buffer.concat([signed, mac(signer, signed)]).toString('base64url');
    },
    read: (token) => {
      const bytes = Buffer.from(token.slice(PREFIX.length), 'base64url');
      const [first = 0, keyId] = bytes;
      const kind = KINDS[first & 0x03];
      if (bytes.length <= HEAD + MAC || (first & 0xf4) !== VERSION || kind === undefined) return undefined;
      const [signed, given] = [bytes.subarray(0, -MAC), bytes.subarray(-MAC)];
      const isGenuine = keys.some((key) => key.id === keyId && timingSafeEqual(mac(key, signed), given));
      // One token has one spelling.
      if (!isGenuine || PREFIX + bytes.toString('base64url') !== token) return undefined;
      const charge = signed.subarray(HEAD);
      return {
        passId: passIdOf(CHARGE_PREFIX + charge.toString('base64url')),
        kind,
        endsAtMs: bytes.readUInt32BE(2) * 1000,
        routeId: (first & ROUTE) === 0 ? undefined : routeIdIn(charge),
        price: priceIn(charge),
        planMark: bytes.toString('latin1', 6, HEAD),
      };
    },
  };
}

/** What tokens hold of the plan with this id: the first 8 bytes of its SHA-256, a character each. */
export function markOfPlan(planId: string): string {
  return hash('sha256', planId, 'latin1').slice(0, HEAD - 6);
}

function deriveKey(secret: string): Key {
  const derive = (purpose: string): Buffer => createHmac('sha256', secret).update(purpose).digest();
  return { id: derive('tollgate pass key id')[0] ?? 0, secret: createSecretKey(derive('tollgate pass token v1')) };
}
