// What needs somebody, worst first: what is wrong, since when, and where to go. Absent if there is nothing.
import type { Resource } from '../../net/resource.ts';
import { Moment, State } from '../../parts/text.tsx';
import { Icon } from '../../parts/icon.tsx';
import type { AttentionAnswer, AttentionLine } from '../../wire/billing.ts';

export function Attention({ of }: { readonly of: Resource<AttentionAnswer> }) {
  const entries = of.value?.data ?? [];
  if (entries.length === 0) return null;
  return (
    <section class="attention" aria-label="Needs attention">
      <ul>
        {entries.map((entry) => (
          <AttentionRow key={`${entry.code} ${entry.subject ?? ''}`} entry={entry} />
        ))}
      </ul>
    </section>
  );
}

function AttentionRow({ entry }: { readonly entry: AttentionLine }) {
  const { code, severity, subject, detail, since, count, link } = entry;
  return (
    <li class={severity === 'page' ? 'page-now' : ''}>
      <State tone={severity === 'page' ? 'bad' : 'warn'}>{severity === 'page' ? 'Now' : 'Soon'}</State>
      <div class="attention-words">
        <strong>{titleOf(code)}</strong>
        {subject && <code>{subject}</code>}
        {count !== null && count > 1 && <span class="count">{count}</span>}
        <p>{detail}</p>
      </div>
      {since && (
        <span class="muted since">
          <Moment at={since} ago />
        </span>
      )}
      {link !== null && link.startsWith('/desk/') && (
        <a class="button small" href={link}>
          Look
          <span class="unseen"> at {titleOf(code)}</span>
          <Icon name="right" size={14} />
        </a>
      )}
    </li>
  );
}

const TITLES: Readonly<Record<string, string>> = {
  settlement_unknown: 'Settlements of unknown end',
  facilitator_failing: 'A facilitator fails',
  facilitator_unauthorized: 'A facilitator refuses our credentials',
  receiver_unpayable: 'A receiver cannot be paid',
  ledger_unavailable: 'The ledger is away',
  store_low: 'The store is almost full',
  sync_stale: 'Routes are old',
  routes_held_back: 'A set of routes is held back',
  sidecar_silent: 'A sidecar is silent',
  webhook_failing: 'A webhook fails',
  webhook_disabled: 'A webhook is switched off',
  config_refused: 'A changed configuration was refused',
  config_differs: 'Configuration and store differ',
  clock_off: 'A clock is off',
};

function titleOf(code: string): string {
  return TITLES[code] ?? code.replaceAll('_', ' ');
}
