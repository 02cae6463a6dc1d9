// The receivers: where money goes, by which network, and how the facilitators are that move it. They are changed in the
// configuration alone; here they are looked at and checked.
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { useResource } from '../../net/resource.ts';
import { Copied } from '../../parts/copied.tsx';
import { Icon } from '../../parts/icon.tsx';
import { PageHead } from '../../parts/page-head.tsx';
import { Empty, Loaded, problemText, Skeleton } from '../../parts/states.tsx';
import { Moment, State, type Tone } from '../../parts/text.tsx';
import { Testnet } from '../../frame/navigation.tsx';
import { countText, millisecondsText } from '../../format/numbers.ts';
import type { FacilitatorView, ReceiverCheckAnswer, ReceiversAnswer, ReceiverView, WayView } from '../../wire/house.ts';

export function ReceiversView() {
  const receivers = useResource<ReceiversAnswer>('/v1/receivers', { every: 30_000 });
  return (
    <>
      <PageHead title="Receivers" about="Where money goes. They are changed in the configuration alone." />
      <Loaded of={receivers} what="Receivers" skeleton={<Skeleton lines={6} tall />}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No receivers" command="tollgate init --upstream http://127.0.0.1:3000 --pay-to 0xYourAddress">
              Without a receiver nothing can be paid for. Declare one under <code>receivers</code> in the configuration.
              Sidecars have theirs in their own configuration, and are checked there by{' '}
              <code>tollgate check --online</code>.
            </Empty>
          ) : (
            <div class="stack">
              {data.map((receiver) => (
                <Receiver key={receiver.id} receiver={receiver} />
              ))}
            </div>
          )
        }
      </Loaded>
    </>
  );
}

function Receiver({ receiver }: { readonly receiver: ReceiverView }) {
  const { id, ways, currencies, routes } = receiver;
  return (
    <section class="card receiver" aria-label={`Receiver ${id}`} data-row>
      <header class="card-head">
        <h2>{id}</h2>
        <p class="muted">
          {currencies.join(', ')} · {countText(routes)} {routes === 1 ? 'route' : 'routes'}
        </p>
        <Check id={id} />
      </header>
      {ways.map((way) => (
        <Way key={`${way.scheme} ${way.network} ${way.asset}`} way={way} />
      ))}
    </section>
  );
}

function Way({ way }: { readonly way: WayView }) {
  return (
    <div class="way">
      <div class="way-head">
        <h3>{way.network_name ?? way.network}</h3>
        {way.testnet && <Testnet />}
        <span class="muted">
          {way.symbol ?? 'token'}, {way.scheme}
        </span>
      </div>
      <dl class="facts">
        <dt>Paid to</dt>
        <dd>
          <Copied text={way.pay_to_address} label="Copy the address" href={way.address_url} />
        </dd>
        <dt>Token</dt>
        <dd>
          <Copied text={way.asset} label="Copy the token's address" />
        </dd>
        {way.rpc !== null && (
          <>
            <dt>Node</dt>
            <dd>
              {way.rpc.host} <State tone={NODE[way.rpc.status].tone}>{NODE[way.rpc.status].text}</State>
            </dd>
          </>
        )}
      </dl>
      <ul class="facilitators" aria-label="Facilitators">
        {way.facilitators.map((facilitator, index) => (
          <Facilitator key={index} facilitator={facilitator} />
        ))}
      </ul>
    </div>
  );
}

type Standing = { readonly tone: Tone; readonly text: string };

const NODE: Readonly<Record<NonNullable<WayView['rpc']>['status'], Standing>> = {
  ok: { tone: 'good', text: 'working' },
  failing: { tone: 'warn', text: 'failing' },
  unasked: { tone: 'calm', text: 'not asked yet' },
};

const FACILITATOR: Readonly<Record<FacilitatorView['status'], Standing>> = {
  ok: { tone: 'good', text: 'working' },
  resting: { tone: 'warn', text: 'left alone for a moment' },
  unauthorized: { tone: 'bad', text: 'refuses our credentials' },
  failing: { tone: 'bad', text: 'failing' },
  unasked: { tone: 'calm', text: 'not asked yet' },
};

function Facilitator({ facilitator }: { readonly facilitator: FacilitatorView }) {
  const { host, auth, status, since, last_error: error, p50_ms: p50 } = facilitator;
  const { tone, text } = FACILITATOR[status];
  return (
    <li>
      <strong>{host}</strong>
      <State tone={tone}>{text}</State>
      <span class="muted">
        {since !== null && status !== 'unasked' && (
          <>
            since <Moment at={since} />
          </>
        )}
        {p50 !== null && `, ${millisecondsText(p50)} at the median`}
        {auth !== null && `, ${auth}`}
      </span>
      {error !== null && status !== 'ok' && <p class="fault">{error}</p>}
    </li>
  );
}

function Check({ id }: { readonly id: string }) {
  const { client, session } = useDesk();
  const isBusy = useSignal(false);
  const found = useSignal<ReceiverCheckAnswer | null>(null);
  const fault = useSignal<string | null>(null);
  if (!session.isAdmin.value) return null;
  const check = async (): Promise<void> => {
    isBusy.value = true;
    const outcome = await client.call<ReceiverCheckAnswer>('POST', `/v1/receivers/${encodeURIComponent(id)}/check`);
    isBusy.value = false;
    found.value = outcome.kind === 'ok' ? outcome.value : null;
    fault.value = outcome.kind === 'ok' ? null : problemText(outcome.kind === 'problem' ? outcome.problem : 'away');
  };
  return (
    <>
      <button
        type="button"
        class="button small"
        data-open
        disabled={isBusy.value}
        aria-label={`Check ${id}`}
        onClick={() => void check()}
      >
        <Icon name="refresh" size={14} />
        {isBusy.value ? 'Checking' : 'Check'}
      </button>
      {(found.value !== null || fault.value !== null) && (
        <div class="findings" role="status">
          {fault.value !== null && <p class="fault">{fault.value}</p>}
          {found.value !== null && <Findings found={found.value} />}
        </div>
      )}
    </>
  );
}

const LEVELS: Readonly<Record<ReceiverCheckAnswer['findings'][number]['level'], Standing>> = {
  ok: { tone: 'good', text: 'fine' },
  warning: { tone: 'warn', text: 'look' },
  cannot_serve: { tone: 'bad', text: 'refused' },
  away: { tone: 'bad', text: 'no answer' },
};

function Findings({ found }: { readonly found: ReceiverCheckAnswer }) {
  return (
    <>
      <p>
        <strong>{found.ok ? 'It can be paid.' : 'Something is wrong.'}</strong>
      </p>
      <ul>
        {found.findings.map(({ level, detail }) => (
          <li key={detail}>
            <State tone={LEVELS[level].tone}>{LEVELS[level].text}</State>
            <span>{detail}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
