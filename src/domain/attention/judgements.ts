// Judgements of what needs somebody: from a fact to a finding, once for readiness, the desk and webhooks. The alerts that are
// shipped (config/prometheus/alerts.yml) go by the same limits, which a test holds.
import { finding, type AttentionFinding } from './attention.ts';

/** Free room of a store's volume below which it is almost full: bytes, and their share of the whole. */
export const LOW_BYTES = 1_073_741_824;
export const LOW_SHARE = 0.1;
/** Time without a confirmation after which routes of a sidecar are old. */
export const STALE_MS = 300_000;
/** Time after which a settlement of unknown end is somebody's to look at. */
export const UNKNOWN_MS = 300_000;
/** Time without a word after which a sidecar is silent. */
export const SILENT_MS = 60_000;
/** Difference of two clocks that leases, quotes and tokens do not forgive. */
const CLOCK_OFF_MS = 5_000;

const MINUTE_MS = 60_000;
const MOST_SUBJECT = 200;

/** `sinceMs`: how long ago the first of them was claimed. */
export function judgeUnknown(count: number, sinceMs: number | null): readonly AttentionFinding[] {
  if (count === 0) return [];
  const minutes = Math.floor((sinceMs ?? 0) / MINUTE_MS);
  const what = count === 1 ? 'A settlement has' : `${count} settlements have`;
  const detail = `${what} no known end for up to ${minutes} minutes. The chain is looked at by itself; with receivers.rpc_url none, or if it lasts, run \`tollgate charges reconcile\`.`;
  return [finding('settlement_unknown', detail, { count, link: '/desk/charges?status=settling' })];
}

/** `reason`: why it is left alone. `isAlone`: nobody else can be asked in its place. */
export function judgeFacilitator(
  name: string,
  reason: string | undefined,
  isAlone: boolean,
): readonly AttentionFinding[] {
  if (reason === undefined) return [];
  const about = { subject: name, link: '/desk/receivers', severity: isAlone ? 'page' : 'ticket' } as const;
  if (reason === 'unauthorized' || reason === 'forbidden')
    return [
      finding(
        'facilitator_unauthorized',
        `The facilitator ${name} does not take our credentials (${reason}): correct its auth or headers in receivers.`,
        about,
      ),
    ];
  if (reason === 'clock_skew')
    return [
      finding('clock_off', `The facilitator ${name} takes no token of this time: set the clock of this machine.`, {
        subject: name,
      }),
    ];
  const others = isAlone
    ? 'Payments are answered 503 until it is back: name a second facilitator.'
    : 'Another one is asked in its place.';
  return [finding('facilitator_failing', `The facilitator ${name} is left alone (${reason}). ${others}`, about)];
}

/** A fault of a service that was asked at a start: `sentence` says what is wrong. */
export function judgeService(
  sentence: string,
  of: { readonly receiver: string } | { readonly facilitator: string; readonly isRefused: boolean } | undefined,
): readonly AttentionFinding[] {
  if (of === undefined) return [];
  const detail = `${sentence.charAt(0).toUpperCase()}${withoutFullStop(sentence.slice(1))}.`;
  const link = '/desk/receivers';
  if ('receiver' in of) return [finding('receiver_unpayable', detail, { subject: of.receiver, link })];
  const code = of.isRefused ? 'facilitator_unauthorized' : 'facilitator_failing';
  return [finding(code, detail, { subject: of.facilitator, link, severity: 'ticket' })];
}

export function judgeStore(stats: { freeBytes: number; volumeBytes: number } | undefined): readonly AttentionFinding[] {
  if (stats === undefined) return [];
  const { freeBytes, volumeBytes } = stats;
  if (freeBytes >= LOW_BYTES && freeBytes >= LOW_SHARE * volumeBytes) return [];
  const left = `${Math.floor(freeBytes / 1_048_576)} MiB of ${Math.floor(volumeBytes / 1_048_576)} MiB`;
  const detail = `The volume of the store has ${left} left: make it larger, or let charges.retention take closed charges away. On a full disk nobody can pay.`;
  return [finding('store_low', detail)];
}

/** `ageMs` undefined: there are no routes yet. */
export function judgeSync(
  ageMs: number | undefined,
  held: string | undefined,
  name: string,
): readonly AttentionFinding[] {
  const isStale = ageMs === undefined || ageMs > STALE_MS;
  const age =
    ageMs === undefined ? 'has no routes yet' : `works with routes of ${Math.round(ageMs / MINUTE_MS)} minutes ago`;
  return [
    ...(isStale
      ? [
          finding(
            'sync_stale',
            `The sidecar ${name} ${age}: is sync.registry_url reachable from there, and the key good?`,
            { subject: name },
          ),
        ]
      : []),
    ...(held === undefined
      ? []
      : [
          finding(
            'routes_held_back',
            `The sidecar ${name} keeps its last good routes, because what the registry sends is odd: ${held}.`,
            {
              subject: name,
            },
          ),
        ]),
  ];
}

export function judgeSilence(name: string, silentMs: number): readonly AttentionFinding[] {
  if (silentMs <= SILENT_MS) return [];
  const detail = `The sidecar ${name} has said nothing for ${Math.floor(silentMs / MINUTE_MS)} minutes: is it running, and does it reach this registry? One that was taken down is forgotten after a day.`;
  return [finding('sidecar_silent', detail, { subject: name.slice(0, MOST_SUBJECT) })];
}

type WebhookStanding = {
  readonly id: string;
  readonly status: 'ok' | 'failing' | 'disabled';
  readonly waiting: number;
  readonly lastError: string | null;
};

export function judgeWebhook({ id, status, waiting, lastError }: WebhookStanding): readonly AttentionFinding[] {
  const about = { subject: id, count: Math.max(1, waiting), link: `/desk/keys?webhook=${encodeURIComponent(id)}` };
  const why = lastError === null ? '' : ` (${lastError})`;
  switch (status) {
    case 'ok':
      return [];
    case 'failing':
      return [
        finding(
          'webhook_failing',
          `The webhook ${id} takes no events${why}; ${waiting} wait and are tried again. Look at what is behind its url.`,
          about,
        ),
      ];
    case 'disabled':
      return [
        finding(
          'webhook_disabled',
          `The webhook ${id} is switched off${why}; its events are kept for 7 days. When it works again, run \`tollgate webhooks enable ${id}\`.`,
          about,
        ),
      ];
    default:
      return status satisfies never;
  }
}

export function judgeClock(aheadMs: number, whose: string): readonly AttentionFinding[] {
  if (Math.abs(aheadMs) <= CLOCK_OFF_MS) return [];
  const way = aheadMs > 0 ? 'ahead of' : 'behind';
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  return [
    finding(
      'clock_off',
      `The clock of this machine is ${seconds} s ${way} that of ${whose}: set it, because tokens and quotes go by it.`,
    ),
  ];
}

export function judgeDifferences(count: number, settings: readonly string[]): readonly AttentionFinding[] {
  return [
    ...(count === 0
      ? []
      : [
          finding(
            'config_differs',
            `${count} declared ${count === 1 ? 'route is' : 'routes are'} not in the store as the file says: \`tollgate check\` names ${count === 1 ? 'it' : 'them'}.`,
            { subject: 'routes', count, link: '/desk/routes' },
          ),
        ]),
    ...settings.map((name) =>
      finding('config_differs', `Registries on this store have different ${name}: give all of them the same.`, {
        subject: name,
      }),
    ),
  ];
}

export function judgeRefusedConfig(reason: string | undefined): readonly AttentionFinding[] {
  if (reason === undefined) return [];
  const detail = `A changed configuration was refused, and the old one stays in force: ${withoutFullStop(reason)}. \`tollgate check\` says all that is wrong.`;
  return [finding('config_refused', detail, { link: '/desk/audit?kind=config.refused' })];
}

export function judgeLedger(reason: string | undefined): readonly AttentionFinding[] {
  if (reason === undefined) return [];
  const detail = `Payments are answered 503: ${withoutFullStop(reason)}. Free routes and 402s go on.`;
  return [finding('ledger_unavailable', detail)];
}

/** A sentence for the inside of another one. */
function withoutFullStop(sentence: string): string {
  return sentence.replace(/\.$/, '');
}
