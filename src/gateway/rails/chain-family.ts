// The port of a chain family: what all of its networks have in common. A family is a folder beside this file and an
// entry in networks.ts. No other part of the program knows it.
import type { Spelling } from '../../domain/payment/charge.ts';
import type { KnownNetwork, WayInput, WayReading } from '../../domain/payment/network.ts';
import type { Requirement, Way } from '../../domain/payment/way.ts';
import type { WayServices } from '../../domain/payment/offer.ts';
import type { Identity } from './nodes.ts';
import type { FindRefund } from './sought-refund.ts';
import type { NetworkRail } from './rail.ts';
import type { Fetch } from './service-call.ts';
import type { ChainWords } from './x402/chain-words.ts';
import type { Facilitators } from './x402/facilitators.ts';
import type { FacilitatorDeps } from './x402/facilitator-calls.ts';

export type ChainFamily = {
  /** Networks that are known by name. */
  readonly networks: readonly KnownNetwork[];
  /** Reads a way; undefined: it names no network of this family. */
  readonly readWay: (input: WayInput) => WayReading | undefined;
  /** Spells a payment in its one way; undefined: it is no payment of this family. */
  readonly canonicalPayment: Spelling['payment'];
  /**
   * Spells an account or a transaction in its one way. Undefined: it is not written like one of this family, or each
   * has one spelling only.
   */
  readonly canonicalIdentifier: (text: string) => string | undefined;
  /**
   * Names an address of this family, for a message if it stands where one of another family belongs. Undefined: it is
   * no address of this family.
   */
  readonly nameAddress: (text: string) => string | undefined;
  /** Whether the text has the form of a transaction of this family. */
  readonly isTransaction: (text: string) => boolean;
  /** Form of an address, in words. */
  readonly addressForm: string;
  /** Form of a name for a network that is not known by name; undefined: it cannot be named. */
  readonly otherNetworks: string | undefined;
  /** Whether the page for people can ask a wallet of the network (CAIP-2). */
  readonly isPaidInBrowser: (network: string) => boolean;
  /** Payments; undefined: none are taken yet. */
  readonly payments: FamilyPayments | undefined;
  readonly wallets: Wallets;
};

/** Text that a wallet signed, by the account that it names. */
export type WalletSignature = { readonly message: string; readonly address: string; readonly signature: string };
/** `unsupported`: no key makes such a signature, so it may be a contract's. */
type WalletVerdict = 'genuine' | 'forged' | 'unsupported' | 'malformed';

/** Checks signatures under messages, without a call. */
export type Wallets = { readonly isSigned: (signed: WalletSignature) => Promise<WalletVerdict> };

/** Checks a signature of a wallet of this chain (CAIP-2). */
export type CheckWallet = (chainId: string, signed: WalletSignature) => Promise<WalletVerdict>;

export type FamilyPayments = {
  readonly createRail: (deps: RailDeps) => NetworkRail;
  readonly words: ChainWords;
  /** An entry of `accepts` at its longest, whatever is known of the network at the moment. */
  readonly fullRequirement: Requirement;
  /** Whether what was signed is of the form of this family's payments, whatever it says. */
  readonly isPayment: (payload: unknown) => boolean;
  /** The signed part of a payment that cannot be valid: a facilitator may be asked about it, and no money can move. */
  readonly unsignedPayment: unknown;
  /** Question by which a node says of which chain it is. */
  readonly identity: Identity;
  /** Looks for a transfer that gave the money of a charge back. */
  readonly findRefund: FindRefund;
  /** Asks a node whether `way` is what is configured. */
  readonly checkNode: (way: Way, services: WayServices, url: string, fetch: Fetch) => Promise<readonly NodeFinding[]>;
};

export type RailDeps = FacilitatorDeps & { readonly facilitators: Facilitators };

/** Level of a finding. `cannot_serve`: payments would be refused. `away`: no answer came. `warning`: worth knowing. */
export type FindingLevel = 'ok' | 'warning' | 'cannot_serve' | 'away';
/** Finding about a node. `detail` is a sentence for an operator: what was found and, if it is wrong, what to do. */
export type NodeFinding = { readonly level: FindingLevel; readonly detail: string };
