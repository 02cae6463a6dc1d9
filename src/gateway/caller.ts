// The caller: the customer id and the payment credential, read only if a request costs something. They are read from the raw
// headers: Node joins or drops repeated ones, and two credentials must never be taken for one. The customer id is a claim
// unless something in front of Tollgate vouches for it.
import type { Caller, Credential } from '../domain/decide.ts';
import { problem, type Problem } from '../domain/problem.ts';

const CREDENTIAL_BYTES = 16 * 1024;
const CUSTOMER_ID = /^[\x21-\x7e]{1,128}$/;
const CREDENTIAL_HEADERS: ReadonlyMap<string, Credential['version']> = new Map([
  ['payment-signature', 2],
  ['x-payment', 1],
]);

/**
 * Reads the caller from raw headers. `customerHeader`: its lower-cased name. Problems: `payment_malformed` for two credentials or one over 16 KiB; its rail
 * reads what is in it. `customer_required` for a customer id that is repeated or not 1..128 visible ASCII characters.
 */
export function readCaller(rawHeaders: readonly string[], customerHeader: string): Caller | Problem {
  let customerId: string | undefined;
  let credential: Credential | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const given = rawHeaders[i] ?? '';
    // Names of other lengths are none of the three.
    if (given.length !== 17 && given.length !== 9 && given.length !== customerHeader.length) continue;
    const name = given.toLowerCase();
    const value = rawHeaders[i + 1] ?? '';
    const version = CREDENTIAL_HEADERS.get(name);
    if (version !== undefined) {
      if (credential !== undefined)
        return problem('payment_malformed', 'The request carries more than one payment; send one.');
      if (value.length > CREDENTIAL_BYTES) return problem('payment_malformed', 'The payment is longer than 16 KiB.');
      credential = { version, value };
    } else if (name === customerHeader) {
      if (customerId !== undefined || !CUSTOMER_ID.test(value)) return customerUnreadable();
      customerId = value;
    }
  }
  return { customerId, credential };
}

/** Reads the customer id alone; undefined: there is none. `customerHeader` is in lower case. */
export function readCustomerId(rawHeaders: readonly string[], customerHeader: string): string | Problem | undefined {
  const [id, ...others] = headerValues(rawHeaders, customerHeader);
  if (id === undefined) return undefined;
  return others.length === 0 && CUSTOMER_ID.test(id) ? id : customerUnreadable();
}

function customerUnreadable(): Problem {
  return problem('customer_required', 'The customer id must be given once, as 1 to 128 visible ASCII characters.');
}

/** Reads callers by a customer header of any spelling. */
export function createCallerReader(customerHeader: string): (req: CallingRequest) => Caller | Problem {
  const name = customerHeader.toLowerCase();
  return ({ rawHeaders }) => readCaller(rawHeaders, name);
}

type CallingRequest = { readonly rawHeaders: readonly string[] };

/** The values of a header, in the order in which they came: a repeated one must never be taken for one. */
export function headerValues(rawHeaders: readonly string[], name: string): readonly string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const given = rawHeaders[i] ?? '';
    if (given.length === name.length && given.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? '');
  }
  return values;
}
