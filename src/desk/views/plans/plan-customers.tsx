// Customers who need not pay: how those of an entry were taken, and which of them asked most.
import { countText } from '../../format/numbers.ts';
import { State } from '../../parts/text.tsx';
import type { CustomersView } from '../../wire/sold-plans.ts';
import { Counts, type Count } from './counts.tsx';

const KNOWN_BY: Readonly<Record<NonNullable<CustomersView['by']>, string>> = {
  ...{ keys: 'by key', jwt: 'by token', networks: 'by network', ask: 'by the sign-in of the API' },
};

const RESULTS = [
  ['known', 'passed'],
  ['quota', 'over their quota'],
  ['unknown', 'not known'],
  ['expired', 'expired'],
  ['unavailable', 'could not be told'],
] as const;
const ALWAYS: ReadonlySet<string> = new Set(['known', 'unknown']);

export function Customers({ entry }: { readonly entry: CustomersView }) {
  const { id, by, plans, quota, requests, names, others } = entry;
  const counts = RESULTS.flatMap(([result, text]): Count[] =>
    requests[result] === 0 && !ALWAYS.has(result) ? [] : [[text, countText(requests[result])]],
  );
  return (
    <section class="card" aria-label={`Customers ${id}`}>
      <header class="card-head">
        <h2>
          <span class="muted">Customers </span>
          {id}
        </h2>
        {by === null && <State tone="warn">not configured here</State>}
        <p class="muted">
          {[
            ...(by === null ? [] : [KNOWN_BY[by]]),
            ...(quota === null ? [] : [`${countText(quota.requests)} a ${quota.window}`]),
            ...(plans.length === 0 ? [] : [`${plans.length === 1 ? 'plan' : 'plans'} ${plans.join(', ')}`]),
          ].join(' · ')}
        </p>
      </header>
      <Counts of={counts} label={`Requests of the customers ${id}`} />
      {names.length > 0 && (
        <table class="names">
          <caption class="unseen">Customers by name</caption>
          <thead>
            <tr>
              <th scope="col">Customer</th>
              <th scope="col" class="number">
                Requests
              </th>
            </tr>
          </thead>
          <tbody>
            {names.map(({ name, requests: count }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td class="number">{countText(count)}</td>
              </tr>
            ))}
            {others > 0 && (
              <tr>
                <th scope="row" class="muted">
                  All others
                </th>
                <td class="number">{countText(others)}</td>
              </tr>
            )}
          </tbody>
        </table>
      )}
    </section>
  );
}
