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
  /** In the smallest unit; undefined: it cannot say. */
  readonly balance: (choice: PricedWay, account: string) => Promise<bigint | undefined>;
  /** `nowMs`: the time of the server. */
  readonly sign: (choice: Choice, account: string, nowMs: number) => Promise<WalletSignature>;
  /** Called when account or network are others than before. */
  readonly watch: (changed: () => void) => void;
};

/** `header`: the value of PAYMENT-SIGNATURE. */
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
