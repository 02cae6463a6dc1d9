// The deliveries of one endpoint in a sheet: what became of each event, every attempt with what came back, and for an admin the
// event once more. What came back was written by somebody else, so it is shown as text, apart from the direction of its letters.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { millisecondsText } from '../../format/numbers.ts';
import { shortened } from '../../format/shortened.ts';
import { withQuery } from '../../net/query.ts';
import { useResource } from '../../net/resource.ts';
import { Choice } from '../../parts/choice.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Pages, readCursors } from '../../parts/pages.tsx';
import { Empty, Loaded, problemText, Skeleton } from '../../parts/states.tsx';
import { Moment, State, type Tone } from '../../parts/text.tsx';
import { hrefOf } from '../../router/view-addresses.ts';
import type { PageOf } from '../../wire/billing.ts';
import type { ShownAttempt, ShownDelivery } from '../../wire/house.ts';

const PAGE = 20;
const EVERY_MS = 15_000;
const STATES = [
  { value: '', text: 'All' },
  { value: 'waiting', text: 'Waiting' },
  { value: 'taken', text: 'Taken' },
  { value: 'given_up', text: 'Given up' },
] as const;

export function Deliveries({ id }: { readonly id: string }) {
  const { client, notices, router, session } = useDesk();
  const path = `/v1/webhooks/${encodeURIComponent(id)}/deliveries`;
  const asked = router.query.value.get('deliveries');
  const status = STATES.find(({ value }) => value === asked)?.value ?? '';
  const cursors = readCursors(router.state.value);
  const page = useResource<PageOf<ShownDelivery>>(withQuery(path, { status, limit: PAGE, cursor: cursors.at(-1) }), {
    every: EVERY_MS,
  });
  const sending = useSignal<string | null>(null);
  const close = (): void => router.setQuery({ webhook: null, deliveries: null });
  const { problem } = page;
  if (page.value === null && problem !== null && problem !== 'away' && problem.code === 'webhook_unknown')
    return (
      <Dialog title="No such webhook" kind="sheet" onClose={close}>
        <p>The configuration has no webhook of this name. Its events went with it.</p>
      </Dialog>
    );
  const send = async (event: string): Promise<void> => {
    sending.value = event;
    const outcome = await client.call('POST', `${path}/${encodeURIComponent(event)}/retry`);
    sending.value = null;
    const said = `The event is sent to ${id} once more.`;
    notices.say(outcome.kind === 'ok' ? said : problemText(outcome.kind === 'problem' ? outcome.problem : 'away'));
    void page.reload();
  };
  return (
    <Dialog title={`Events for ${id}`} kind="sheet" onClose={close}>
      <Choice
        label="Which events"
        options={STATES}
        value={status}
        onChange={(value) => router.setQuery({ deliveries: value })}
      />
      <Loaded of={page} what="Deliveries" skeleton={<Skeleton lines={6} />}>
        {({ data, next_cursor: next }) =>
          data.length === 0 ? (
            <Empty title={status === '' ? 'Nothing was sent yet' : 'No event is like that'}>
              {status === ''
                ? 'Events appear here when something happens that this endpoint wants, or by a test event.'
                : 'Events that were taken are kept for 7 days, those given up for 30.'}
            </Empty>
          ) : (
            <>
              <ul class="deliveries">
                {data.map((delivery) => (
                  <Delivery
                    key={delivery.event_id}
                    delivery={delivery}
                    isSending={sending.value === delivery.event_id}
                    onSend={session.isAdmin.value ? () => void send(delivery.event_id) : null}
                  />
                ))}
              </ul>
              <Pages cursors={cursors} next={next} shown={data.length} what={data.length === 1 ? 'event' : 'events'} />
            </>
          )
        }
      </Loaded>
    </Dialog>
  );
}

type DeliveryProps = {
  readonly delivery: ShownDelivery;
  readonly isSending: boolean;
  /** Null: a viewer may not. */
  readonly onSend: (() => void) | null;
};

const STANDINGS: Readonly<Record<ShownDelivery['status'], { readonly tone: Tone; readonly text: string }>> = {
  waiting: { tone: 'busy', text: 'waiting' },
  taken: { tone: 'good', text: 'taken' },
  given_up: { tone: 'bad', text: 'given up' },
};

function Delivery({ delivery, isSending, onSend }: DeliveryProps) {
  const { event_id: event, type, subject, status, created_at: at, next_attempt_at: next, attempts } = delivery;
  const { tone, text } = STANDINGS[status];
  const last = attempts.at(-1);
  return (
    <li>
      <div class="delivery-head">
        <strong>{type}</strong>
        <State tone={tone}>{text}</State>
        {onSend !== null && (
          <button
            type="button"
            class="button small"
            disabled={isSending}
            aria-label={`Send again: ${type} ${event}`}
            onClick={onSend}
          >
            Send again
          </button>
        )}
      </div>
      <p class="muted">
        {subject !== null && <Subject type={type} subject={subject} />}
        <Moment at={at} />
        {status === 'waiting' && next === null && ', after an earlier event'}
        {status === 'waiting' && next !== null && attempts.length > 0 && (
          <>
            , next attempt <Moment at={next} />
          </>
        )}
      </p>
      {last !== undefined && attempts.length === 1 && <Attempts attempts={attempts} />}
      {last !== undefined && attempts.length > 1 && (
        <details class="raw" open={status !== 'taken'}>
          <summary>{attempts.length} attempts</summary>
          <Attempts attempts={attempts} />
        </details>
      )}
    </li>
  );
}

function Subject({ type, subject }: { readonly type: string; readonly subject: string }) {
  const view = type.startsWith('charge.') ? 'charges' : type.startsWith('route.') ? 'routes' : null;
  const text = (
    <code title={subject}>
      <bdi>{shortened(subject, 18, 6)}</bdi>
    </code>
  );
  return <>{view === null || type === 'route.deleted' ? text : <a href={hrefOf(view, subject)}>{text}</a>} </>;
}

/** Newest first. */
function Attempts({ attempts }: { readonly attempts: readonly ShownAttempt[] }) {
  return (
    <ol class="timeline">
      {attempts.toReversed().map(({ at, status, duration_ms: took, body }, index) => (
        <li key={`${at} ${index}`} class={status !== null && status >= 200 && status < 300 ? 'good' : 'bad'}>
          <div>
            <strong>{status === null ? 'no answer' : `answered ${status}`}</strong>
            <span class="muted">
              <Moment at={at} />, {millisecondsText(took)}
            </span>
          </div>
          {body !== '' && (
            <p>
              <bdi>{body}</bdi>
            </p>
          )}
        </li>
      ))}
    </ol>
  );
}
