// The sidecars that take their routes from this registry: who they are, how far they are behind, whether they could take a payment.
import { useResource } from '../../net/resource.ts';
import { Moment, State, type Tone } from '../../parts/text.tsx';
import { Loaded, Skeleton } from '../../parts/states.tsx';
import type { SidecarsAnswer, SidecarView } from '../../wire/house.ts';

type SidecarsProps = {
  /** Sidecars whose requests are in none of the numbers. */
  readonly uncounted: number;
  readonly attempt: number;
};

export function Sidecars({ uncounted, attempt }: SidecarsProps) {
  const sidecars = useResource<SidecarsAnswer>('/v1/sidecars', { every: 30_000, attempt });
  return (
    <section class="card">
      <header class="card-head">
        <h2>Sidecars</h2>
      </header>
      {uncounted > 0 && (
        <p class="missing">
          {uncounted === 1 ? 'One sidecar hands' : `${uncounted} sidecars hand`} no counts over: their requests are in
          none of these numbers. Their keys need the scope <code>ledger</code>.
        </p>
      )}
      <Loaded of={sidecars} what="Sidecars" skeleton={<Skeleton lines={2} />}>
        {({ data }) => (
          <table class="rows">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">State</th>
                <th scope="col">Version</th>
                <th scope="col">Address</th>
                <th scope="col">Seen</th>
              </tr>
            </thead>
            <tbody>
              {data.map((sidecar) => (
                <SidecarRow key={`${sidecar.name} ${sidecar.address ?? ''} ${sidecar.since ?? ''}`} sidecar={sidecar} />
              ))}
            </tbody>
          </table>
        )}
      </Loaded>
    </section>
  );
}

function SidecarRow({ sidecar }: { readonly sidecar: SidecarView }) {
  const { name, version, address, last_seen: seen, reasons } = sidecar;
  const standing = standingOf(sidecar);
  return (
    <tr data-row>
      <th scope="row" class="a1">
        {name}
      </th>
      <td class="a2">
        <State tone={standing.tone}>{standing.text}</State>
        {reasons.length > 0 && <p class="muted">{reasons.join('; ')}</p>}
      </td>
      <td>{version ?? '–'}</td>
      <td class="b1">
        <code>{address ?? '–'}</code>
      </td>
      <td class="b2 muted">
        <Moment at={seen} ago />
      </td>
    </tr>
  );
}

function standingOf({ ready, behind }: SidecarView): { readonly tone: Tone; readonly text: string } {
  if (ready === false) return { tone: 'bad', text: 'not ready' };
  if (ready === null) return { tone: 'warn', text: 'says nothing of itself' };
  return behind ? { tone: 'warn', text: `${behind} behind` } : { tone: 'good', text: 'up to date' };
}
