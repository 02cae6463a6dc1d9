// Counts of what plans did, beside the counts of requests by route: how requests of a plan ended, what a dry run would have
// asked for, how customers were taken. They add up over processes, hours and days.

/**
 * What is counted. `plan`: requests of a plan by outcome; `would_charge`: requests of a plan in its dry run that a payment would
 * have been charged for, by currency; `customers`: requests that showed something of an entry, by result; `customer`: requests
 * of customers of an entry, by the name that its key file gives them.
 */
export const SALE_KINDS = ['plan', 'would_charge', 'customers', 'customer'] as const;
export type SaleKind = (typeof SALE_KINDS)[number];

/** Name of a count. `subject`: the plan or entry; `detail`: the outcome, currency, result or customer; `scale`: decimals of its amount. */
export type SaleName = {
  readonly kind: SaleKind;
  readonly subject: string;
  readonly detail: string;
  readonly scale: number;
};

/** `amount`: money that the requests would have cost, an integer in units of 10^-scale as text; "0" if it is not about money. */
export type SaleCount = SaleName & { readonly requests: number; readonly amount: string };

/** Customers by name in one hour or day at most, over all entries; further ones count together under no name. */
export const MOST_CUSTOMER_NAMES = 1000;
/** Detail of the customers who have no count of their own. */
export const OTHER_CUSTOMERS = '';

/** Counts by their name, which their owner adds to. */
export type SaleCounts = {
  readonly size: () => number;
  readonly add: (count: SaleCount) => void;
  /** Up to `limit` counts, which are held here no longer. */
  readonly take: (limit: number) => readonly SaleCount[];
};

/** `named`: customers who have a count of their own already, by `saleKey`. */
export function createSaleCounts(named: ReadonlySet<string> = new Set()): SaleCounts {
  const counts = new Map<string, { readonly name: SaleName; requests: number; amount: bigint }>();
  let places = MOST_CUSTOMER_NAMES - named.size;
  /** The name under which somebody counts: a customer has his own as long as there is a place. */
  const placeOf = (count: SaleCount): SaleCount => {
    if (count.kind !== 'customer' || count.detail === OTHER_CUSTOMERS) return count;
    const key = saleKey(count);
    if (counts.has(key) || named.has(key)) return count;
    if (places <= 0) return { ...count, detail: OTHER_CUSTOMERS };
    places -= 1;
    return count;
  };
  return {
    size: () => counts.size,
    add: (given) => {
      const count = placeOf(given);
      const key = saleKey(count);
      const known = counts.get(key);
      if (known === undefined) {
        const { requests, amount, ...name } = count;
        counts.set(key, { name, requests, amount: BigInt(amount) });
        return;
      }
      known.requests += count.requests;
      if (count.amount !== '0') known.amount += BigInt(count.amount);
    },
    take: (limit) => {
      const taken: SaleCount[] = [];
      for (const [key, { name, requests, amount }] of counts) {
        if (taken.length === limit) break;
        counts.delete(key);
        taken.push({ ...name, requests, amount: String(amount) });
      }
      return taken;
    },
  };
}

/** Text that is equal for equal names: a subject is an id and has no space, a detail may be anything. */
export function saleKey({ kind, subject, detail, scale }: SaleName): string {
  return `${kind} ${subject} ${scale} ${detail}`;
}
