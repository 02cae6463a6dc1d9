// The `routes` section: what an SDK would register, with defaults, and with words for what people write there instead.
import { z } from 'zod';
import { AMOUNT_ADVICE, parsePrice } from '../domain/payment/money.ts';
import { routeBody, routeFields } from '../domain/routing/route.ts';
import { whatStands } from './fields.ts';

const method = z
  .string({
    error: ({ input }) =>
      Array.isArray(input)
        ? 'is a list; write one route for each method, or * for any method'
        : `${whatStands(input)}; write an HTTP method such as GET, or * for any method`,
  })
  .pipe(routeFields.method);

/** A price as a route writes one. */
export const amountText = z
  .string(`quote the amount: ${AMOUNT_ADVICE}`)
  .refine((value) => parsePrice(value) !== undefined, { error: ({ input }) => amountAdvice(input) });

/** An amount in the configuration beside the routes: what is missing or not quoted is told as such. */
export function amountOf(what: string) {
  const unquoted = ({ input }: { input?: unknown }): string =>
    input === undefined ? `is missing; write ${what}: ${AMOUNT_ADVICE}` : `quote the amount: ${AMOUNT_ADVICE}`;
  return z
    .string({ error: unquoted })
    .refine((value) => parsePrice(value) !== undefined, { error: ({ input }) => amountAdvice(input) });
}

/** Advises on an amount, and never says the value itself. */
function amountAdvice(input: unknown): string {
  const value = typeof input === 'string' ? input : '';
  if (/\d/.test(value) && /[A-Za-z$€£¥]/.test(value) && !/^[\d.]+e[+-]?\d+$/i.test(value)) {
    return 'holds more than the number; write that alone, such as "0.10", and the code of the currency into currency';
  }
  if (value.includes(',')) return 'has a comma; write a point and nothing between thousands, such as "0.10"';
  if (/^[-+]/.test(value)) return 'has a sign; write the amount without one, greater than 0';
  return `is not usable; write ${AMOUNT_ADVICE}`;
}

export const configRouteSchema = z.strictObject({
  ...routeBody,
  method: method.default('*'),
  amount: amountText,
  status: z
    .enum(['active', 'paused'], {
      error: ({ input }) =>
        `${typeof input === 'string' ? 'is not known' : whatStands(input)}; write active, or paused for a route that costs nothing for now`,
    })
    .default('active'),
});
