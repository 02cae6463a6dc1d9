// One charge in a sheet: what became of it, step by step; the money; who paid, where to look at it on the chain; all of it as the
// registry tells it.
import { useEffect } from 'preact/hooks';
import { useResource } from '../../net/resource.ts';
import { Copied, CopyBlock } from '../../parts/copied.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Prose } from '../../parts/prose.tsx';
import { Loaded, Skeleton } from '../../parts/states.tsx';
import { Amount, ChargeState, Moment } from '../../parts/text.tsx';
import { hrefOf } from '../../router/view-addresses.ts';
import { useDesk } from '../../desk-context.ts';
import type { ChargeRecord, HistoryEntry } from '../../wire/billing.ts';
import { Refunds } from './refund-list.tsx';

type ChargePanelProps = {
  readonly id: string;
  /** The charge as the stream told it last. */
  readonly changed: ChargeRecord | null;
  readonly onClose: () => void;
};

export function ChargePanel({ id, changed, onClose }: ChargePanelProps) {
  const path = `/v1/billing/charges/${encodeURIComponent(id)}`;
  const charge = useResource<ChargeRecord>(path);
  const history = useResource<{ readonly data: readonly HistoryEntry[] }>(`${path}/history`);
  useEffect(() => {
    if (changed === null) return;
    charge.put(changed);
    void history.reload();
  }, [changed?.updated_at, changed?.status]);
  const { problem } = charge;
  if (charge.value === null && problem !== null && problem !== 'away' && problem.status === 404)
    return (
      <Dialog title="No such charge" kind="sheet" onClose={onClose}>
        <p>There is no charge with this id here. It may be kept no longer, or an unpaid 402 told its id.</p>
        <CopyBlock text={`tollgate why ${id}`} label="Command" />
      </Dialog>
    );
  return (
    <Dialog title="Charge" kind="sheet" onClose={onClose}>
      <Loaded of={charge} what="The charge" skeleton={<Skeleton lines={6} />}>
        {(value) => (
          <>
            <div class="charge-head">
              <p class="value">
                <Amount amount={value.amount} currency={value.currency} />
              </p>
              <ChargeState status={value.status} owed={value.owed} />
            </div>
            <Meaning charge={value} />
            <section>
              <h3>Timeline</h3>
              <Loaded of={history} what="The timeline">
                {({ data }) => <Timeline entries={data} />}
              </Loaded>
            </section>
            <Refunds
              charge={value}
              onRecorded={(recorded) => {
                charge.put(recorded);
                void history.reload();
              }}
            />
            <Facts charge={value} />
            <details class="raw">
              <summary>As JSON</summary>
              <CopyBlock text={JSON.stringify(value, null, 2)} label="JSON" />
            </details>
          </>
        )}
      </Loaded>
    </Dialog>
  );
}

/** What the state means for the owner, in a sentence; nothing if all is as it should be. */
function Meaning({ charge }: { readonly charge: ChargeRecord }) {
  const text =
    charge.owed !== null
      ? `The money was taken and nothing usable was given (${charge.owed}). Send it back, then record the transfer here or with \`tollgate charges refund\`.`
      : charge.status === 'settling'
        ? 'Whether the money moved is being found out. Nothing is charged twice meanwhile.'
        : charge.status === 'released'
          ? 'The claim was given back. Nothing was charged.'
          : charge.status === 'failed'
            ? 'The payment was refused or its time ended. Nothing was charged.'
            : null;
  return text === null ? null : (
    <p class="meaning">
      <Prose text={text} />
    </p>
  );
}

const DOTS: Readonly<Record<string, string>> = {
  ...{ settled: 'good', delivered: 'good', failed: 'bad', settling: 'busy', claimed: 'busy' },
};

function Timeline({ entries }: { readonly entries: readonly HistoryEntry[] }) {
  const { times } = useDesk();
  const first = Date.parse(entries[0]?.at ?? '');
  return (
    <ol class="timeline">
      {entries.map((entry, index) => {
        const at = Date.parse(entry.at);
        const after = at - first;
        return (
          <li key={`${entry.at} ${entry.event} ${index}`} class={DOTS[entry.state] ?? ''}>
            <div>
              <strong>{entry.event.replaceAll('_', ' ')}</strong>
              <time class="muted" dateTime={entry.at} title={times.whole(at)}>
                {index === 0 ? times.clock(at) : `+${after < 10_000 ? `${after} ms` : `${Math.round(after / 1000)} s`}`}
              </time>
            </div>
            {(entry.by !== null || entry.detail !== null) && (
              <p>{[entry.by, entry.detail].filter((each) => each !== null && each !== '').join(': ')}</p>
            )}
          </li>
        );
      })}
    </ol>
  );
}

function Facts({ charge }: { readonly charge: ChargeRecord }) {
  const reason = charge['reason'];
  return (
    <dl class="facts">
      <dt>Request</dt>
      <dd>
        <code>
          {charge.method} {charge.path}
        </code>
      </dd>
      <dt>Route</dt>
      <dd>
        <a href={hrefOf('routes', charge.route_id)}>
          <code>
            {charge.route_method} {charge.route_pattern}
          </code>
        </a>
      </dd>
      {typeof charge.pass_id === 'string' && (
        <>
          <dt>Pass</dt>
          <dd>
            <a href={hrefOf('passes', charge.pass_id)}>what was sold with it</a>
          </dd>
        </>
      )}
      {typeof reason === 'string' && (
        <>
          <dt>Reason</dt>
          <dd>
            <code>{reason}</code>
          </dd>
        </>
      )}
      <dt>Payer</dt>
      <dd>
        <Copied text={charge.payer} label="Copy the payer" href={charge.payer_url} />
      </dd>
      {charge.customer_id !== null && (
        <>
          <dt>Customer</dt>
          <dd>{charge.customer_id}</dd>
        </>
      )}
      <dt>Transaction</dt>
      <dd>
        {charge.transaction === null ? (
          <span class="muted">none yet</span>
        ) : (
          <Copied text={charge.transaction} label="Copy the transaction" href={charge.transaction_url} />
        )}
      </dd>
      <dt>Network</dt>
      <dd>{charge.network_name ?? charge.network}</dd>
      <dt>Paid to</dt>
      <dd>
        <Copied text={charge.pay_to_address} label="Copy the address" />
      </dd>
      <dt>Charge id</dt>
      <dd>
        <Copied text={charge.id} label="Copy the charge id" />
      </dd>
      {charge.request_id !== null && (
        <>
          <dt>Request id</dt>
          <dd>
            <Copied text={charge.request_id} label="Copy the request id" />
          </dd>
        </>
      )}
      <dt>Claimed</dt>
      <dd>
        <Moment at={charge.created_at} />
      </dd>
    </dl>
  );
}
