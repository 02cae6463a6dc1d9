// The rail of Solana networks: scheme `exact` of x402 version 2, paid by a transaction that its payer signed and that a
// facilitator pays the fee of. What the transaction does is read and checked here before anybody is asked.
// Source: x402 v2, scheme `exact` on Solana.
import type { QuoteFacts, RailOffer, Requirement, Way } from '../../../domain/payment/way.ts';
import { problem } from '../../../domain/problem.ts';
import type { RailDeps } from '../chain-family.ts';
import type { LookSubject, NetworkRail, PresentedPayment, Refusal } from '../rail.ts';
import { readEnvelope, writeReceipt } from '../x402/client-wire.ts';
import { quoteExtra, requirementV2 } from '../x402/accepts-entry.ts';
import type { ChainWords } from '../x402/chain-words.ts';
import { findTokenAccount, readBase58 } from './addresses.ts';
import { checkTransaction, readTransfer, type ExpectedTransfer } from './check.ts';
import { createLook, type SoughtPayment } from './look.ts';
import { findSvmNetwork } from './known-networks.ts';
import { readSvmPayload, svmPayloadOf } from './payload.ts';
import { canonicalPayment } from './spelling.ts';
import { createReadiness } from './readiness.ts';
import { SIGNATURE_BYTES } from './transaction.ts';

export function createSvmRail(deps: RailDeps): NetworkRail {
  const readiness = createReadiness(deps);
  const accounts = createAccounts();
  return {
    serves: (network) => findSvmNetwork(network) !== undefined,
    requirement: (offer, quote, version) => {
      const feePayer = readiness.feePayer(offer.way);
      return feePayer === undefined ? undefined : writeRequirement(offer, quote, version, feePayer);
    },
    watch: readiness.watch,
    revision: readiness.revision,
    read: readPresented,
    check: (presented, offer) => checkPayment(presented, offer, accounts(offer.way)),
    // The facilitator that verified knows alone that it pays the fee.
    ...deps.facilitators.askFor(SVM_WORDS, { settles: 'who_verified' }),
    receiptHeader: (version, receipt) => writeReceipt(version, receipt, undefined),
    look: createLook({
      ...deps,
      nodesOf: (charge) => {
        const known = findSvmNetwork(charge.payment.network)?.rpcUrls ?? [];
        const urls = deps.services(charge.way)?.rpcUrls ?? known;
        return { urls, isPublic: (url) => known.includes(url) };
      },
      seek,
    }),
  };
}

/** Version 1 names no way on Solana. */
function writeRequirement(offer: RailOffer, quote: QuoteFacts, version: 1 | 2, feePayer: string): object | undefined {
  return version === 1 ? undefined : requirementV2(offer, { feePayer, ...quoteExtra(quote) });
}

/** No address is longer than this one would be. */
export const fullRequirement: Requirement = (offer, quote, version) =>
  writeRequirement(offer, quote, version, 'x'.repeat(44));

export const SVM_WORDS: ChainWords = {
  payload: ({ payload }) => ({ transaction: svmPayloadOf(payload).base64 }),
  extra: (_, payload) => (payload === undefined ? {} : { feePayer: svmPayloadOf(payload).transaction.signers[0] }),
  readTransaction: (text) => (readBase58(text, SIGNATURE_BYTES) === undefined ? undefined : text),
  findCaip2: (network) => findSvmNetwork(network)?.caip2,
  isKnown: (network) => findSvmNetwork(network) !== undefined,
  v1NameOf: () => undefined,
  isSameAddress: (a, b) => a === b,
};

const readPresented: NetworkRail['read'] = (envelope) => {
  const result = readSvmPayload(envelope);
  if (!result.ok) return problem('payment_malformed', result.detail);
  const { version, sha256, network, accepted } = envelope;
  const { transaction } = result.payload;
  const [feePayer = '', payer = feePayer] = transaction.signers;
  const key = canonicalPayment({ network, asset: accepted?.asset ?? '', payer, unique: transaction.messageHash });
  if (key === undefined) return undefined;
  return {
    ...{ version, key, sha256 },
    chargeId: accepted?.extra?.external_ref,
    amount: readTransfer(transaction)?.amount ?? 0n,
    deadline: undefined,
    payload: result.payload,
  };
};

/** Reasons are x402's own words where it has them: clients may know them. */
function checkPayment(
  presented: PresentedPayment,
  { way, amount }: RailOffer,
  destination: string,
): Refusal | undefined {
  const { envelope, transaction } = svmPayloadOf(presented.payload);
  const { scheme, accepted } = envelope;
  if (scheme !== way.scheme) return { reason: 'invalid_scheme', expected: way.scheme };
  if (accepted?.amount !== amount.toString()) return { reason: 'invalid_amount', expected: amount.toString() };
  const wanted: ExpectedTransfer = { mint: way.asset, decimals: way.decimals, destination, amount };
  return checkTransaction(transaction, wanted);
}

/** The token accounts that are paid, each derived once. */
function createAccounts(): (way: Way) => string {
  const known = new WeakMap<Way, string>();
  return (way) => {
    let account = known.get(way);
    if (account === undefined) known.set(way, (account = findTokenAccount(way.payTo, way.asset) ?? ''));
    return account;
  };
}

/** The credential is kept for as long as its payment may be under way. */
function seek({ credential, x402Version: version, amount }: LookSubject): SoughtPayment | undefined {
  if (credential === null) return undefined;
  const read = readEnvelope({ version, value: credential });
  const reading = read.ok ? readSvmPayload(read.envelope) : undefined;
  if (reading?.ok !== true) return undefined;
  const { transaction } = reading.payload;
  const transfer = readTransfer(transaction);
  return transfer && { transaction, source: transfer.source, amount };
}
