// API keys: what SDKs and sidecars show to the registry. A new one is shown once; revoking asks for its name.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { useResource } from '../../net/resource.ts';
import { Icon } from '../../parts/icon.tsx';
import { PageHead } from '../../parts/page-head.tsx';
import { Empty, Loaded, Skeleton } from '../../parts/states.tsx';
import { Moment, State } from '../../parts/text.tsx';
import type { ApiKeysAnswer, ApiKeyView } from '../../wire/house.ts';
import { NewKey } from './new-key.tsx';
import { RevokeKey } from './revoke-key.tsx';
import { Webhooks } from './webhook-list.tsx';

const API_KEYS = '/v1/api-keys';

export function KeysView() {
  const { session } = useDesk();
  const keys = useResource<ApiKeysAnswer>(API_KEYS);
  const isMaking = useSignal(false);
  const revoking = useSignal<ApiKeyView | null>(null);
  const isAdmin = session.isAdmin.value;
  return (
    <>
      <PageHead title="Keys" about="What SDKs and sidecars show to the registry.">
        {isAdmin && keys.value !== null && (
          <button type="button" class="button primary" data-new onClick={() => (isMaking.value = true)}>
            <Icon name="plus" size={16} />
            New key
          </button>
        )}
      </PageHead>
      <div class="stack">
        <section class="card" aria-label="Keys">
          <Loaded of={keys} what="Keys" skeleton={<Skeleton lines={4} />}>
            {({ data }) =>
              data.length === 0 ? (
                <Empty title="No keys yet" command="tollgate keys create --name production --scope sdk,ledger">
                  A sidecar needs a key with the scopes sdk and ledger, an SDK one with sdk. Make one here or on the
                  command line:
                </Empty>
              ) : (
                <KeyTable keys={data} onRevoke={isAdmin ? (key) => (revoking.value = key) : null} />
              )
            }
          </Loaded>
        </section>
        <Webhooks />
      </div>
      {isMaking.value && (
        <NewKey
          onClose={() => {
            isMaking.value = false;
            void keys.reload();
          }}
        />
      )}
      {revoking.value !== null && (
        <RevokeKey
          apiKey={revoking.value}
          onClose={() => {
            revoking.value = null;
            void keys.reload();
          }}
        />
      )}
    </>
  );
}

type KeyTableProps = { readonly keys: readonly ApiKeyView[]; readonly onRevoke: ((key: ApiKeyView) => void) | null };

function KeyTable({ keys, onRevoke }: KeyTableProps) {
  return (
    <table class="rows keys">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Scopes</th>
          <th scope="col">State</th>
          <th scope="col" class="wide-only">
            Made
          </th>
          <th scope="col">Last used</th>
          {onRevoke !== null && (
            <th scope="col">
              <span class="unseen">Revoke</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <tr key={key.id ?? key.name} data-row class={key.revoked_at === null ? '' : 'over'}>
            <th scope="row" class="a1">
              <strong>{key.name}</strong>
            </th>
            <td class="b1">
              <span class="tags">
                {key.scopes.map((scope) => (
                  <span key={scope} class="tag">
                    {scope}
                  </span>
                ))}
              </span>
            </td>
            <td class="a2">
              {key.revoked_at === null ? (
                <State tone="good">{key.where === 'configuration' ? 'in the configuration' : 'live'}</State>
              ) : (
                <State tone="calm">revoked</State>
              )}
            </td>
            <td class="wide-only muted">
              {key.created_at === null ? '–' : <Moment at={key.created_at} />}
              {key.created_by !== null && `, ${key.created_by}`}
            </td>
            <td class={onRevoke === null ? 'b2 muted' : 'wide-only muted'}>
              <Moment at={key.last_used_at} ago="hour" />
            </td>
            {onRevoke !== null && (
              <td class="b2 act">
                {key.id !== null && key.revoked_at === null && (
                  <button
                    type="button"
                    class="button small"
                    data-open
                    aria-label={`Revoke ${key.name}`}
                    onClick={() => onRevoke(key)}
                  >
                    Revoke
                  </button>
                )}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
