// One pass in a sheet: what was sold, what is left of it and who may use it where; an admin may end it there.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { countText } from '../../format/numbers.ts';
import { withQuery } from '../../net/query.ts';
import { useResource } from '../../net/resource.ts';
import { Copied, CopyBlock } from '../../parts/copied.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Loaded, Skeleton } from '../../parts/states.tsx';
import { Amount, Moment } from '../../parts/text.tsx';
import { hrefOf } from '../../router/view-addresses.ts';
import type { PassRecord } from '../../wire/sold-passes.ts';
import { Counts } from '../plans/counts.tsx';
import { meaningOf, partText } from './pass-words.ts';
import { PassState } from './pass-state.tsx';
import { RevokePass } from './revoke-pass.tsx';

type PassPanelProps = {
  readonly id: string;
  /** Called after the pass was changed here. */
  readonly onChanged: () => void;
  readonly onClose: () => void;
};

export function PassPanel({ id, onChanged, onClose }: PassPanelProps) {
  const pass = useResource<PassRecord>(`/v1/billing/passes/${encodeURIComponent(id)}`);
  const { problem } = pass;
  if (pass.value === null && problem !== null && problem !== 'away' && problem.status === 404)
    return (
      <Dialog title="No such pass" kind="sheet" onClose={onClose}>
        <p>There is no pass with this id here. Its charge may not be settled, or it may be kept no longer.</p>
        <CopyBlock text={`tollgate why ${id.replace('pass_', 'chg_')}`} label="Command" />
      </Dialog>
    );
  return (
    <Dialog title="Pass" kind="sheet" onClose={onClose}>
      <Loaded of={pass} what="The pass" skeleton={<Skeleton lines={6} />}>
        {(value) => (
          <PassDetails
            pass={value}
            onRevoked={(revoked) => {
              pass.put(revoked);
              onChanged();
            }}
          />
        )}
      </Loaded>
    </Dialog>
  );
}

type PassDetailsProps = { readonly pass: PassRecord; readonly onRevoked: (pass: PassRecord) => void };

function PassDetails({ pass, onRevoked }: PassDetailsProps) {
  const { session } = useDesk();
  const isRevoking = useSignal(false);
  const { sold, drawn, left, reserved, lapsed } = pass;
  return (
    <>
      <div class="charge-head">
        <p class="value">
          <Amount amount={pass.amount} currency={pass.currency} />
        </p>
        <PassState status={pass.status} />
      </div>
      <p class="meaning">{meaningOf(pass)}</p>
      {sold !== null && (
        <Counts
          label="What it holds"
          of={[
            ['sold', partText(pass, sold)],
            ['left', partText(pass, left)],
            ['drawn', partText(pass, drawn)],
            ['reserved', partText(pass, reserved)],
            ['lapsed', partText(pass, lapsed)],
          ]}
        />
      )}
      <Facts pass={pass} />
      <details class="raw">
        <summary>As JSON</summary>
        <CopyBlock text={JSON.stringify(pass, null, 2)} label="JSON" />
      </details>
      {session.isAdmin.value && pass.status === 'live' && (
        <div class="dialog-foot">
          <button type="button" class="button danger" onClick={() => (isRevoking.value = true)}>
            Revoke pass
          </button>
        </div>
      )}
      {isRevoking.value && (
        <RevokePass
          pass={pass}
          onClose={() => (isRevoking.value = false)}
          onRevoked={(revoked) => {
            isRevoking.value = false;
            onRevoked(revoked);
          }}
        />
      )}
    </>
  );
}

function Facts({ pass }: { readonly pass: PassRecord }) {
  const { plan, scope, uses } = pass;
  return (
    <dl class="facts">
      <dt>Pass</dt>
      <dd>
        <a href={withQuery(hrefOf('passes'), { plan, pass: pass.pass })}>
          {pass.pass} of the plan {plan}
        </a>
      </dd>
      <dt>Good for</dt>
      <dd>{scope === 'plan' ? 'every route of the plan' : 'the route that it was bought on'}</dd>
      <dt>Bought on</dt>
      <dd>
        <a href={hrefOf('routes', pass.route_id)}>its route</a>
      </dd>
      <dt>Charge</dt>
      <dd>
        <a href={hrefOf('charges', pass.charge_id)}>what was paid for it</a>
      </dd>
      {uses !== null && (
        <>
          <dt>Requests</dt>
          <dd>{countText(uses)}</dd>
        </>
      )}
      <dt>Payer</dt>
      <dd>
        <Copied text={pass.payer} label="Copy the payer" href={pass.payer_url} />
      </dd>
      <dt>Network</dt>
      <dd>{pass.network_name ?? pass.network}</dd>
      <dt>Sold</dt>
      <dd>
        <Moment at={pass.sold_at} />
      </dd>
      <dt>Ends</dt>
      <dd>
        <Moment at={pass.ends_at} />
      </dd>
      {pass.revoked_at !== null && (
        <>
          <dt>Revoked</dt>
          <dd>
            <Moment at={pass.revoked_at} />
          </dd>
        </>
      )}
      <dt>Pass id</dt>
      <dd>
        <Copied text={pass.id} label="Copy the pass id" />
      </dd>
    </dl>
  );
}
