// A wallet as the page asks it, whatever chains it is for. Each of its refusals has a word, so that people are told
// what to do.
import type { Choice, PricedWay } from './required.ts';

export type Wallet = {
  readonly id: string;
  readonly name: string;
  /** A data URL. */
  readonly icon: string | undefined;
  /** Asks for an account. `anew`: lets people choose another one. */
  readonly connect: (anew: boolean) => Promise<string>;
  /** Whether it is on the network of `choice`. */
  readonly isOn: (choice: PricedWay) => Promise<boolean>;
  readonly switchTo: (choice: PricedWay) => Promise<void>;
  /** Reads the balance in the smallest unit; undefined if the wallet cannot say. */
  readonly balance: (choice: PricedWay, account: string) => Promise<bigint | undefined>;
  /** Signs a payment. `nowMs` is the server's time. */
  readonly sign: (choice: Choice, account: string, nowMs: number) => Promise<WalletSignature>;
  /** Calls `changed` if the account or the network changes. */
  readonly watch: (changed: () => void) => void;
};

/** Signature of a wallet. `header` is the value of PAYMENT-SIGNATURE. */
type WalletSignature = { readonly header: string };

export type FaultKind = 'refused' | 'prompt_open' | 'unknown_network' | 'disconnected' | 'other';

export class WalletFault extends Error {
  readonly kind: FaultKind;

  constructor(kind: FaultKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

export function faultOf(error: unknown): WalletFault {
  if (error instanceof WalletFault) return error;
  return new WalletFault('other', error instanceof Error ? error.message : String(error));
}
