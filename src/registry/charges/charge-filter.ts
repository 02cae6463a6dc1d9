// The filter of a list of charges, from its query. `q` is one text that people paste from wherever they found it: what it
// names is told by its form. It is compared whole, or as a beginning of ids, and never as a pattern.
import type { z } from 'zod';
import { CHARGE_ID, type Spelling } from '../../domain/payment/charge.ts';
import type { ChargeFilter } from '../../domain/payment/reports.ts';
import { NAMES_OF_CHARGES, type chargesQuery } from './charge-schemas.ts';

type FilterQuery = Omit<z.output<typeof chargesQuery>, 'limit' | 'cursor'>;
type Filter = Omit<ChargeFilter, 'limit' | 'before'>;

type FilterReading =
  | { readonly kind: 'filter'; readonly filter: Filter }
  /** `message`: what `q` takes. */
  | { readonly kind: 'unreadable'; readonly message: string };

/** What `q` may name that has a parameter of its own. */
const NAMED_TWICE = ['payer', 'transaction', 'requestId'] as const;
/** The first characters of an id that name it. */
const LEAST_OF_ID = 12;
const ID_PREFIX = 'chg_';
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

export function readFilter(query: FilterQuery, spelling: Spelling): FilterReading {
  const named = query.q === undefined ? {} : readName(query.q, spelling);
  if (named === undefined) return { kind: 'unreadable', message: NAMES_OF_CHARGES };
  const { payer, transaction, request_id: requestId } = query;
  const given = { payer, transaction, requestId };
  // Two names that exclude each other: a charge in no state at all.
  const excluded = NAMED_TWICE.some((name) => {
    const [one, other] = [given[name], named[name]];
    return one !== undefined && other !== undefined && spelling.identifier(one) !== spelling.identifier(other);
  });
  return {
    kind: 'filter',
    filter: {
      states: excluded ? [] : query.status,
      owed: query.owed,
      routeId: query.route_id,
      network: query.network,
      customerId: query.customer_id,
      currency: query.currency,
      receiverId: query.receiver_id,
      fromMs: query.from,
      toMs: query.to,
      ...given,
      ...named,
    },
  };
}

type NameFilter = Pick<Filter, 'payer' | 'transaction' | 'requestId' | 'idStart'>;

/** Undefined: it has the form of nothing that names a charge. */
function readName(text: string, spelling: Spelling): NameFilter | undefined {
  if (text.startsWith(ID_PREFIX))
    return text.length >= LEAST_OF_ID && CHARGE_ID.test(text) ? { idStart: text } : undefined;
  const form = spelling.formOf(text);
  if (form !== undefined) return form === 'account' ? { payer: text } : { transaction: text };
  // Half an address is no id of a request.
  return REQUEST_ID.test(text) && !/^0x/i.test(text) ? { requestId: text } : undefined;
}
