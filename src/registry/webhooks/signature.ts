// Signatures of Standard Webhooks 1.0.0: HMAC-SHA256 over id, time and body, one for each secret. While a secret is changed for
// another both sign, so a receiver takes the events whichever of them it has.
import { createHmac } from 'node:crypto';
import { keyOfSecret } from '../../domain/webhooks/webhook-secret.ts';

/** Headers of one attempt. `seconds`: its time since the epoch. */
export function signedHeaders(
  secrets: readonly string[],
  { id, seconds, body }: { readonly id: string; readonly seconds: number; readonly body: string },
): Readonly<Record<string, string>> {
  const signed = `${id}.${seconds}.${body}`;
  const signatures = secrets.flatMap((secret) => {
    const key = keyOfSecret(secret);
    return key === undefined ? [] : [`v1,${createHmac('sha256', key).update(signed).digest('base64')}`];
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': signatures.join(' '),
  };
}
