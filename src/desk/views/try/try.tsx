// Trying a request without sending it: which route applies and why, and what the proxy would answer. Nothing is counted or
// stored, and nothing reaches the API.
import { useRef } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { useResource } from '../../net/resource.ts';
import { withQuery } from '../../net/query.ts';
import { CopyBlock } from '../../parts/copied.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Prose } from '../../parts/prose.tsx';
import { PageHead } from '../../parts/page-head.tsx';
import { Empty, Loaded, Skeleton } from '../../parts/states.tsx';
import { Method } from '../../parts/text.tsx';
import { moneyText } from '../../format/money.ts';
import { hrefOf } from '../../router/view-addresses.ts';
import type { TryAnswer } from '../../wire/billing.ts';
import { readHeader } from './decoded-header.ts';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];

export function TryView() {
  const { router } = useDesk();
  const query = router.query.value;
  const [method, path] = [query.get('method') ?? 'GET', query.get('path') ?? ''];
  const answer = useResource<TryAnswer>(path === '' ? null : withQuery('/v1/billing/try', { method, path }));
  return (
    <>
      <PageHead title="Try it" about="What becomes of a request, without sending it." />
      <TryLine key={`${method} ${path}`} method={method} path={path} />
      {path === '' ? (
        <Empty title="Write a request">
          A method and a path as a client would send them. The answer is that of the proxy itself: the same code
          decides.
        </Empty>
      ) : (
        <Loaded of={answer} what="A try" skeleton={<Skeleton lines={4} tall />}>
          {(value) => <Outcome answer={value} method={method} />}
        </Loaded>
      )}
    </>
  );
}

function TryLine({ method, path }: { readonly method: string; readonly path: string }) {
  const { router } = useDesk();
  const verb = useSignal(METHODS.includes(method) ? method : 'GET');
  const field = useRef<HTMLInputElement>(null);
  return (
    <form
      class="toolbar try-line"
      onSubmit={(event) => {
        event.preventDefault();
        // Who pastes `GET /reports/7` or a whole address means its parts.
        const text = field.current?.value.trim() ?? '';
        const [, said, rest = ''] = /^(?:([A-Z]+)\s+)?(?:https?:\/\/[^/\s]+)?(.*)$/.exec(text) ?? [];
        router.setQuery({ method: said ?? verb.value, path: rest }, { push: true });
      }}
    >
      <select aria-label="Method" value={verb.value} onChange={(event) => (verb.value = event.currentTarget.value)}>
        {METHODS.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      <input
        ref={field}
        class="mono"
        data-search
        aria-label="Path"
        placeholder="/v1/reports/7"
        spellcheck={false}
        autoComplete="off"
        autoCapitalize="off"
        defaultValue={path}
      />
      <button type="submit" class="button primary">
        Try
      </button>
    </form>
  );
}

function Outcome({ answer, method }: { readonly answer: TryAnswer; readonly method: string }) {
  const { tone, text, detail } = verdictOf(answer, method);
  const params = Object.entries(answer.params);
  return (
    <div class="stack">
      <section class={`verdict ${tone}`} aria-label="Verdict" role="status">
        <Icon name={tone === 'bad' ? 'warn' : tone === 'good' ? 'check' : 'right'} />
        <div>
          <p>{text}</p>
          {detail && <p class="muted">{detail}</p>}
        </div>
      </section>
      {answer.because.length > 0 && <Because answer={answer} />}
      {params.length > 0 && (
        <section class="card">
          <header class="card-head">
            <h2>Path parameters</h2>
          </header>
          <dl class="facts boxed">
            {params.map(([name, value]) => (
              <div key={name} class="pair">
                <dt>
                  <code>{name}</code>
                </dt>
                <dd>
                  <code>{value}</code>
                </dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {answer.answer !== null && <FourOhTwo answer={answer.answer} />}
      {answer.curl && (
        <section>
          <h3>From a terminal</h3>
          <CopyBlock text={answer.curl} label="Command" />
        </section>
      )}
    </div>
  );
}

type Verdict = { readonly tone: 'good' | 'calm' | 'bad'; readonly text: string; readonly detail?: string };

function verdictOf(answer: TryAnswer, method: string): Verdict {
  const { problem, target, route, payment_required: isPaid, reason } = answer;
  if (problem !== null)
    return { tone: 'bad', text: `Refused with ${problem.status ?? 400} ${problem.code}.`, detail: problem.detail };
  const request = `${method} ${target ?? ''}`;
  if (isPaid && route !== null) {
    const price = moneyText(route.amount, route.currency);
    const text = `${request} costs ${price}.`;
    if (answer.answer !== null) return { tone: 'good', text, detail: 'Without a payment it is answered with a 402.' };
    return { tone: 'good', text, detail: reason ?? 'This process takes no payments, so the 402 is another one’s.' };
  }
  if (isPaid)
    return {
      tone: 'bad',
      text: `${request} is not forwarded without a payment.`,
      ...(reason ? { detail: reason } : {}),
    };
  if (route !== null) return { tone: 'calm', text: `${request} is free: its route is ${route.status}.` };
  return { tone: 'calm', text: `${request} is free: no route covers it.`, detail: 'It is forwarded as it is.' };
}

function Because({ answer }: { readonly answer: TryAnswer }) {
  return (
    <section class="card">
      <header class="card-head">
        <h2>Why</h2>
      </header>
      <ol class="because">
        {answer.because.map((each) => (
          <li key={each.route_id} class={each.wins ? 'wins' : ''}>
            <Icon name={each.wins ? 'check' : 'close'} size={16} />
            <div>
              <a class="route-name" href={hrefOf('routes', each.route_id)}>
                <Method>{each.method}</Method>
                <code>{each.route_pattern}</code>
              </a>
              {each.why !== 'wins' && (
                <p class="muted">
                  <Prose text={sentenceOf(each.why)} />
                </p>
              )}
            </div>
            <span class={each.wins ? 'tag on' : 'tag'}>{each.wins ? 'applies' : 'loses'}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** A registry says why without a subject; here the route above it is one. */
function sentenceOf(why: string): string {
  return `${why.charAt(0).toUpperCase()}${why.slice(1)}${why.endsWith('.') ? '' : '.'}`;
}

function FourOhTwo({ answer }: { readonly answer: NonNullable<TryAnswer['answer']> }) {
  const body = typeof answer.body === 'string' ? readHeader(answer.body) : JSON.stringify(answer.body, null, 2);
  return (
    <section class="card">
      <header class="card-head">
        <h2>What is answered</h2>
        <span class="tag">{answer.status}</span>
      </header>
      <div class="answer">
        <h3>Headers</h3>
        <dl class="headers">
          {answer.headers.map(([name, value]) => (
            <div key={name}>
              <dt>
                <code>{name}</code>
              </dt>
              <dd>
                {/^payment-/i.test(name) ? (
                  <>
                    <p class="muted">decoded</p>
                    <CopyBlock text={readHeader(value)} label={name} />
                  </>
                ) : (
                  <code>{value}</code>
                )}
              </dd>
            </div>
          ))}
        </dl>
        <h3>Body</h3>
        <CopyBlock text={body} label="Body" />
      </div>
    </section>
  );
}
