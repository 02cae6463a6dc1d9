// The endpoints that events are sent to: whether each takes them, what waits, the events of one of them, and for an admin a test
// event and an end to being disabled. Endpoints come from the configuration, so nothing is made or changed here; without any the
// section is not there.
import { useDesk } from '../../desk-context.ts';
import { withQuery } from '../../net/query.ts';
import { useResource } from '../../net/resource.ts';
import { problemText } from '../../parts/states.tsx';
import { Moment, State, type Tone } from '../../parts/text.tsx';
import { Deliveries } from './deliveries.tsx';
import type { WebhooksAnswer, ShownWebhook } from '../../wire/house.ts';

const PATH = '/v1/webhooks';
const HERE = '/desk/keys';
const EVERY_MS = 30_000;

export function Webhooks() {
  const { client, notices, router, session } = useDesk();
  const shown = router.query.value.get('webhook');
  const webhooks = useResource<WebhooksAnswer>(PATH, { every: EVERY_MS });
  const data = webhooks.value?.data ?? [];
  // A link to events says what there is, also where there is no endpoint any more.
  if (data.length === 0) return shown === null ? null : <Deliveries key={shown} id={shown} />;
  const ask = async (id: string, action: 'test' | 'enable', said: string): Promise<void> => {
    const outcome = await client.call('POST', `${PATH}/${encodeURIComponent(id)}/${action}`);
    notices.say(outcome.kind === 'ok' ? said : problemText(outcome.kind === 'problem' ? outcome.problem : 'away'));
    void webhooks.reload();
  };
  const isAdmin = session.isAdmin.value;
  return (
    <section class="card" aria-labelledby="webhooks">
      <header class="card-head">
        <h2 id="webhooks">Webhooks</h2>
      </header>
      <table class="rows">
        <thead>
          <tr>
            <th scope="col">Endpoint</th>
            <th scope="col">State</th>
            <th scope="col" class="wide-only">
              Events
            </th>
            <th scope="col">Waiting</th>
            {isAdmin && (
              <th scope="col">
                <span class="unseen">Send</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {data.map((webhook) => (
            <WebhookRow
              key={webhook.id}
              webhook={webhook}
              onTest={isAdmin ? () => void ask(webhook.id, 'test', `A test event goes to ${webhook.id}.`) : null}
              onEnable={() => void ask(webhook.id, 'enable', `${webhook.id} is enabled; all that waits is sent.`)}
            />
          ))}
        </tbody>
      </table>
      {shown !== null && <Deliveries key={shown} id={shown} />}
    </section>
  );
}

type WebhookRowProps = {
  readonly webhook: ShownWebhook;
  /** Null: a viewer may not. */
  readonly onTest: (() => void) | null;
  readonly onEnable: () => void;
};

const TONES: Readonly<Record<ShownWebhook['status'], Tone>> = { ok: 'good', failing: 'warn', disabled: 'bad' };

function WebhookRow({ webhook, onTest, onEnable }: WebhookRowProps) {
  const {
    id,
    host,
    events,
    status,
    waiting,
    oldest_waiting_at: oldest,
    last_success_at: taken,
    last_error: error,
  } = webhook;
  return (
    <tr data-row>
      <th scope="row" class="a1">
        <a href={withQuery(HERE, { webhook: id })} data-open>
          <strong>{id}</strong>
          <span class="unseen"> and its events</span>
        </a>{' '}
        <span class="muted">{host}</span>
      </th>
      <td class="a2">
        <State tone={TONES[status]}>{status === 'ok' ? 'takes events' : status}</State>
        {status !== 'ok' && error !== null && <p class="muted">{error}</p>}
      </td>
      <td class="wide-only muted">{events.includes('*') ? 'all' : events.join(', ')}</td>
      <td class="b1 muted">
        {waiting === 0 ? (
          <>
            none, last taken <Moment at={taken} ago />
          </>
        ) : (
          <>
            {waiting} since <Moment at={oldest} ago />
          </>
        )}
      </td>
      {onTest !== null && (
        <td class="b2 act">
          {status === 'disabled' ? (
            <button type="button" class="button small" aria-label={`Enable ${id}`} onClick={onEnable}>
              Enable
            </button>
          ) : (
            <button type="button" class="button small" aria-label={`Send a test event to ${id}`} onClick={onTest}>
              Test
            </button>
          )}
        </td>
      )}
    </tr>
  );
}
