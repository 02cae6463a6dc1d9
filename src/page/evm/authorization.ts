// Data that a payer signs on an EVM chain: an EIP-3009 authorization as EIP-712 typed data, and the credential that
// carries it (x402 version 2, scheme `exact`).
import type { Accept } from '../required.ts';

type TransferAuthorization = {
  readonly from: string;
  readonly to: string;
  readonly value: string;
  readonly validAfter: string;
  readonly validBefore: string;
  readonly nonce: string;
};

/** Clocks of chains and servers may be behind. */
const EARLIER_SECONDS = 600;

/** Makes the authorization of a payment. `random` is 32 bytes. */
export function authorize(accept: Accept, from: string, nowMs: number, random: Uint8Array): TransferAuthorization {
  const now = Math.floor(nowMs / 1000);
  return {
    from,
    to: accept.payTo,
    value: accept.amount,
    validAfter: String(now - EARLIER_SECONDS),
    validBefore: String(now + accept.maxTimeoutSeconds),
    nonce: `0x${Array.from(random, (byte) => byte.toString(16).padStart(2, '0')).join('')}`,
  };
}

/** Lists fields of typed data, each written as its name and its type. */
function fields(...written: readonly string[]): readonly object[] {
  return written.map((each) => {
    const [name, type] = each.split(' ');
    return { name, type };
  });
}

/** Writes the typed data for `eth_signTypedData_v4`. */
export function typedData({ asset, extra }: Accept, chainId: number, message: TransferAuthorization): string {
  return JSON.stringify({
    types: {
      EIP712Domain: fields('name string', 'version string', 'chainId uint256', 'verifyingContract address'),
      TransferWithAuthorization: fields(
        ...[
          'from address',
          'to address',
          'value uint256',
          'validAfter uint256',
          'validBefore uint256',
          'nonce bytes32',
        ],
      ),
    },
    primaryType: 'TransferWithAuthorization',
    domain: { name: extra.name, version: extra.version, chainId, verifyingContract: asset },
    message,
  });
}

/** The value of PAYMENT-SIGNATURE. */
export function credential(accepted: Accept, authorization: TransferAuthorization, signature: string): string {
  const payload = { signature: withRecovery(signature), authorization };
  const bytes = new TextEncoder().encode(JSON.stringify({ x402Version: 2, accepted, payload }));
  return btoa(String.fromCharCode(...bytes));
}

/** Corrects the last byte of a signature: some wallets write 0 and 1, and contracts read 27 and 28. */
function withRecovery(signature: string): string {
  if (!/^0x[0-9a-f]{128}0[01]$/i.test(signature)) return signature;
  return signature.slice(0, -2) + (signature.endsWith('0') ? '1b' : '1c');
}
