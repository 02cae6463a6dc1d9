// Descriptions and examples for the OpenAPI document: what each operation is for beyond its summary, and an example of
// what is sent and answered. By operation id; a test holds that none is missing and that the schemas accept every
// example.
import type { z } from 'zod';
import type { counterChangesWire, counterResultsWire } from '../../domain/selling/counter-wire.ts';
import type {
  drawChangesWire,
  drawResultsWire,
  keptPassesWire,
  revokedPassesWire,
} from '../../domain/selling/pass-wire.ts';
import { passIdOf } from '../../domain/selling/pass.ts';
import { chargeToWire } from '../../domain/payment/charge-wire.ts';
import { eventToWire, type renewedWire } from '../../domain/payment/ledger-wire.ts';
import type { RouteWire } from '../../domain/routing/route.ts';
import {
  EXAMPLE_CHANGE,
  EXAMPLE_CHARGES,
  EXAMPLE_CLAIM,
  EXAMPLE_LEASE_MS,
  EXAMPLE_HISTORY,
  EXAMPLE_MAX_UNSETTLED,
  EXAMPLE_NETWORKS,
  EXAMPLE_OWNER,
} from '../charges/charge-examples.ts';
import type { advanceBody, claimBody, refundBody, renewalsBody, summaryBody } from '../charges/charge-schemas.ts';
import { viewCharge } from '../charges/charge-view.ts';
import { csvHeader, csvLine } from '../charges/charge-csv.ts';
import { owedHeader, owedLine } from '../charges/owed-csv.ts';
import type { changeList, createBody, health, matchBody, patchBody, RegisterBody, routeList } from './schemas.ts';
import type { tryBody } from '../trying/try-schemas.ts';
import type { patternBody } from '../trying/pattern-schemas.ts';
import type { attentionList } from '../attention/attention-endpoint.ts';
import type { auditList } from '../audit/audit-schemas.ts';
import type { ReceiverCheck, receiverList } from '../receivers/receiver-schemas.ts';
import type { sidecarList } from '../sidecars/sidecar-schemas.ts';
import type { keyBody, keyList, KeyView, newKey } from '../keys/key-schemas.ts';
import type { WhyReport } from '../charges/charge-schemas.ts';
import type { deliveryList, enabledWebhook, sentEvent, webhookList } from '../webhooks/webhook-schemas.ts';
import type { planList } from '../plans/plan-schemas.ts';
import type { passList, PassView } from '../passes/pass-schemas.ts';
import type { overviewBody, seriesBody, topRoutesBody, totalsBody } from '../totals/totals-schemas.ts';

/** Example of a call. `answer` is the body of every answer that carries what was asked for. */
export type Example = { readonly description: string; readonly body?: unknown; readonly answer?: unknown };

const AT = '2026-01-31T12:00:00.000Z';
const LATER = '2026-01-31T12:00:01.500Z';

const route: RouteWire = {
  id: EXAMPLE_CLAIM.route.id,
  route_pattern: '/reports/*',
  method: 'GET',
  amount: '0.10',
  currency: 'USD',
  name: 'Reports',
  description: 'One report',
  status: 'active',
  allow_anonymous: true,
  source: 'sdk-python-fastapi',
  receiver_config_id: null,
  plan_id: null,
  created_at: AT,
  updated_at: AT,
};
const byPlans = { observed: 20, customer: 50, pass: 0, quota: 6 };
const requests = {
  free: 900,
  paid: 0,
  payment_required: 300,
  refused: 2,
  error: 1,
  released: 4,
  discovery: 3,
  ...byPlans,
};
const minimal: RegisterBody = { route_pattern: '/reports/*', method: 'GET', amount: '0.10' };
const patch: z.input<typeof patchBody> = { amount: '0.25', name: null };
const charge = viewCharge(EXAMPLE_CHARGES.delivered, EXAMPLE_NETWORKS);
const claimed = chargeToWire(EXAMPLE_CHARGES.claimed);
const settling = chargeToWire(EXAMPLE_CHARGES.settling);
const pass: PassView = {
  ...{ id: passIdOf(charge.id), charge_id: charge.id, status: 'live', plan: 'default', pass: 'hundred', kind: 'uses' },
  ...{ scope: 'plan', route_id: route.id, payer: charge.payer, payer_url: charge.payer_url },
  ...{ network: charge.network, network_name: charge.network_name, amount: '0.50', currency: 'USD', seconds: null },
  ...{ sold: '100', drawn: '12', left: '87', reserved: '1', lapsed: '0', uses: 12 },
  ...{ sold_at: LATER, ends_at: '2026-03-02T12:00:01.500Z', revoked_at: null },
};
const document = {
  description: 'The document is made from the schemas that validate, so it says what this version does.',
  answer: { openapi: '3.1.0', info: { title: 'Tollgate registry', version: '0.1.0' }, paths: {} },
};

const DASHBOARD = {
  listRoutes: {
    description:
      'Filters apply together. Send `next_cursor` back as `cursor` for the page after; it is null on the last.',
    answer: { data: [route], next_cursor: null } satisfies z.input<typeof routeList>,
  },
  createRoute: {
    description: 'Refused with 409 and `existing_id` where a route with this method and an equal pattern exists.',
    body: { ...minimal, name: 'Reports' } satisfies z.input<typeof createBody>,
    answer: { ...route, source: 'dashboard' },
  },
  getRoute: {
    description: 'Send the `ETag` of an earlier answer as `If-None-Match` to read it only if it changed.',
    answer: route,
  },
  patchRoute: {
    description:
      'Members that are left out stay as they are; `null` empties those that may be null. Send the `ETag` that you read as `If-Match`, so that no other change is lost.',
    body: patch,
    answer: { ...route, amount: '0.25', name: null, updated_at: LATER },
  },
  deleteRoute: {
    description:
      'Requests to its paths are free from then on, unless another route names them. To stop charging for a while, pause it.',
  },
  listRouteChanges: {
    description: 'Also of a route that was deleted, for as long as its changes are kept.',
    answer: {
      data: [{ at: LATER, by: 'alice', before: route, after: { ...route, amount: '0.25', updated_at: LATER } }],
      next_cursor: null,
    } satisfies z.input<typeof changeList>,
  },
} as const;

const SDK = {
  getRouteSet: {
    description:
      'Poll it with `If-None-Match`: 304 while nothing changed. Query parameters that are not known are ignored.',
    answer: [route],
  },
  registerRoute: {
    description:
      'For an application’s every start. A route with this method and pattern stays as it is, with what the dashboard changed: 200. Refused with 409 `price_lowered` if it would make a path cheaper that the dashboard or the configuration prices.',
    body: minimal,
    answer: { ...route, name: null, description: null, source: 'sdk' },
  },
  matchRoute: {
    description:
      'Decided by the matcher of the proxy. Percent-encode `path` once more than the request does, as any value of a query. If `ambiguous` is there, a proxy refuses the path.',
    answer: {
      matched: true,
      payment_required: true,
      route,
      params: { wildcard: 'q3' },
    } satisfies z.input<typeof matchBody>,
  },
  streamEvents: {
    description:
      'After `reset` the whole set has to be read again. Every 15 seconds, and once after what `Last-Event-ID` asks for, `head` says what the set is: `revision`, the number of `routes`, and a `digest` of 64 hex digits, the sum modulo 2^256 of the SHA-256 of each route’s JSON as the whole set has it. Who has applied every event in order has that digest; who has another one reads the whole set.',
    answer: `id: 42\nevent: route.updated\ndata: ${JSON.stringify(route)}\n\n`,
  },
} as const;

const BILLING = {
  listCharges: {
    description:
      '`status` takes several states with commas between. `q` takes a charge id or its first 12 characters or more, the id of a request, a payer or a transaction, and tells them apart by their form. `owed=true` lists what was paid for and can be delivered no more. Times are RFC 3339, or dates.',
    answer: { data: [charge], next_cursor: null },
  },
  streamCharges: {
    description:
      'An event `charge` for every change of state, whichever process made it; its data is the charge. More than 50 of one second are counted in `skipped`. `Last-Event-ID` resumes within 5 minutes; after `reset` the list has to be read again. A comment every 15 seconds. The stream ends with the session or the token that opened it; 10 at a time for one subject, 100 in all.',
    answer: `event: charge\nid: 42\ndata: ${JSON.stringify(charge)}\n\n`,
  },
  exportCharges: {
    description:
      'The filters of the list; `from` and `to` are needed, at most 92 days apart. The columns are the members of a charge. A value that begins with `=`, `+`, `-`, `@`, a tab or a return has an apostrophe before it, so that no spreadsheet takes it for a formula. Two files are written at a time.',
    answer: csvHeader() + csvLine(charge),
  },
  exportOwed: {
    description:
      'Whom to give money back: a line for each charge that is owed, of all times. `to` is the payer, `amount` what is left to give back, `since` when it was taken, `reason` whose fault it is. Record what you sent with `refundCharge`: the charge is owed no more.',
    answer: owedHeader() + owedLine(EXAMPLE_CHARGES.owed),
  },
  refundCharge: {
    description:
      'Tollgate sends no money: it records what you sent. `amount` is a decimal, left out all that is left of the charge. Proven on the chain: the transaction holds a transfer of the charge’s token to its payer, of at least the amount, younger than the payment and `confirmations` deep, whoever sent it; one transfer proves one refund. `unproven: true` records it by your word, where no chain can be read. The same transaction again is 200 and changes nothing.',
    body: { transaction: `0x${'9b'.repeat(32)}`, reason: 'the report was empty' } satisfies z.input<typeof refundBody>,
    answer: viewCharge(EXAMPLE_CHARGES.refunded, EXAMPLE_NETWORKS),
  },
  getChargeHistory: {
    description:
      'Oldest first, at most 64. `by` is `request`, `reconciler`, `operator` or `store`; of charges from before version 0.1 only their times are known, and `by` is null.',
    answer: { data: EXAMPLE_HISTORY.map((entry) => ({ ...entry, at: new Date(entry.at).toISOString() })) },
  },
  getCharge: { description: 'By its whole id. Never answers a credential or a kept answer.', answer: charge },
  explainWhy: {
    description: '`id` is that of a charge or its beginning, of a 402, of a request, or a transaction.',
    answer: {
      id: charge.id,
      charges: [charge],
      quote: null,
      refusals: [],
      refusals_elsewhere: false,
      ledger_elsewhere: false,
    } satisfies WhyReport,
  },
  summariseCharges: {
    description:
      'The last 30 days unless `from` and `to` say otherwise. `amount_atomic` is exact, in units of the asset. Each sum is of one route, or of all routes if `group_by` is `network`.',
    answer: {
      from: '2026-01-31T00:00:00.000Z',
      to: '2026-02-01T00:00:00.000Z',
      bucket: 'day',
      data: [
        {
          start: '2026-01-31T00:00:00.000Z',
          route_id: route.id,
          currency: 'USD',
          network: charge.network,
          asset: charge.asset,
          asset_decimals: charge.asset_decimals,
          charges: 12,
          amount: '1.20',
          amount_atomic: '1200000',
          refunded: '0.10',
          refunded_atomic: '100000',
        },
      ],
    } satisfies z.input<typeof summaryBody>,
  },
  showOverview: {
    description:
      'The last 24 hours unless `from` and `to` say otherwise, widened to whole steps of what is kept; `previous` is the same time before. `conversion` is `paid` by `payment_required`. Added latency is that of all requests.',
    answer: {
      from: '2026-01-30T12:00:00.000Z',
      to: AT,
      revenue: [{ currency: 'USD', amount: '12.30', previous: '9.80' }],
      requests: { ...requests, paid: 123 },
      previous: { ...requests, paid: 98 },
      conversion: 0.41,
      overhead_ms: { p50: 0.21, p99: 1.9 },
      routes: { active: 12, paused: 1 },
      charges: { claimed: 0, settling: 1, settled: 0, delivered: 221, released: 4, failed: 1 },
      sync: { sidecars: 2, stale: 0, uncounted: 0, lost: 0 },
      as_of: AT,
    } satisfies z.input<typeof overviewBody>,
  },
  showSeries: {
    description:
      'At most 1,000 points. Minutes are of all routes together and of the last 48 hours; days are of UTC. Left out, `step` is the one that fits. With `network` charges alone are known.',
    answer: {
      from: '2026-01-31T10:00:00.000Z',
      to: AT,
      step: 'hour',
      times: ['2026-01-31T10:00:00.000Z', '2026-01-31T11:00:00.000Z'],
      requests: { free: [40, 31], paid: [6, 5], payment_required: [12, 14], refused: [0, 1], error: [0, 0] },
      revenue: [{ currency: 'USD', amounts: ['0.60', '0.50'] }],
      overhead_ms: { p50: [0.21, 0.2], p99: [1.9, 1.8] },
      complete_until: AT,
    } satisfies z.input<typeof seriesBody>,
  },
  showTopRoutes: {
    description:
      '`by` is `requests` unless it says otherwise; `revenue` needs `currency`. An hour and a day name 1,000 routes; what the rest did is in `others`.',
    answer: {
      from: '2026-01-30T12:00:00.000Z',
      to: AT,
      data: [
        {
          ...{ route_id: route.id, route, requests: { ...requests, paid: 120 } },
          ...{ revenue: [{ currency: 'USD', amount: '12.00' }], conversion: 0.4 },
        },
      ],
      others: { requests: { ...requests, paid: 3 }, revenue: [{ currency: 'USD', amount: '0.30' }], conversion: 0.01 },
    } satisfies z.input<typeof topRoutesBody>,
  },
  listPlans: {
    description:
      'The last 24 hours unless `from` and `to` say otherwise, in whole hours. Revenue is that of the routes which a plan sells now; `would_charge` is what a dry run would have asked for. Plans that only sidecars know are there with `known` false once requests of theirs were counted. An entry lists the 20 customers of its key file with the most requests.',
    answer: {
      from: '2026-01-30T12:00:00.000Z',
      to: AT,
      data: [
        {
          ...{ id: 'members', known: true, observe_until: null, observing: false, routes: 3 },
          sells: 'free for customers of partners, then a payment of the price of its route',
          requests: { ...requests, paid: 120, observed: 0 },
          ...{ revenue: [{ currency: 'USD', amount: '12.00' }], would_charge: [] },
        },
      ],
      customers: [
        {
          ...{ id: 'partners', by: 'keys', plans: ['members'], quota: { requests: 10000, window: 'month' } },
          requests: { known: 50, unknown: 3, expired: 0, quota: 0, unavailable: 0 },
          ...{ names: [{ name: 'acme', requests: 41 }], others: 9 },
        },
      ],
      as_of: AT,
    } satisfies z.input<typeof planList>,
  },
  listPasses: {
    description:
      'Filters apply together: `plan`, `pass` (the id of its terms in the plan), `payer` in any spelling, and `live`: `true` for passes that can be used, `false` for those that were revoked, are used up or have ended.',
    answer: { data: [pass], next_cursor: null } satisfies z.input<typeof passList>,
  },
  getPass: {
    description:
      'Its id is that of its charge with `pass_` for `chg_`. `sold` is `drawn`, `left`, `reserved` and `lapsed` together at any moment, in uses or in its currency; a pass by seconds has no such sum. Never answers the token that its holder shows.',
    answer: pass,
  },
  revokePass: {
    description:
      'At once for uses and credit, within 10 seconds everywhere for seconds; what is left lapses, and requests that go on end as they would. Revoked again it stays as it was. No money goes back by itself: record what you send with `refundCharge` on its charge. A refund of the whole price revokes the pass.',
    answer: { ...pass, status: 'revoked', left: '0', lapsed: '87', revoked_at: LATER } satisfies PassView,
  },
} as const;

/** A pass of a hundred uses, one of which is drawn. */
const EXAMPLE_PASS = {
  id: passIdOf(charge.id),
  terms: { plan: 'starter', id: 'hundred', scope: 'plan', valid_ms: '2592000000', first: '1', uses: '100' },
  ...{ route_id: route.id, payer: EXAMPLE_CLAIM.payment.payer, network: EXAMPLE_CLAIM.payment.network },
  ...{ amount: '0.50', currency: 'USD', sold_at: 1769860800000, ends_at: 1772452800000, revoked_at: null },
  ...{ sold: '100', drawn: '1', reserved: '0', uses: 1, lost: 0, gone: 0 },
} satisfies z.input<typeof keptPassesWire>['data'][0];

const LEDGER = {
  claimPayment: {
    description:
      'Atomic: of many claims of one payment one is `claimed`. A call repeated with its `change_id` is the same call.',
    body: {
      ...EXAMPLE_CLAIM,
      owner: EXAMPLE_OWNER,
      lease_ms: EXAMPLE_LEASE_MS,
      max_unsettled_per_payer: EXAMPLE_MAX_UNSETTLED,
    } satisfies z.input<typeof claimBody>,
    answer: { kind: 'claimed', charge: claimed },
  },
  findClaims: {
    description: 'One of: `id`; `network`, `asset`, `payer` and `unique`; `due=true` for charges without an owner.',
    answer: { data: [claimed] },
  },
  advanceClaim: {
    description: 'What cannot happen in the state that the charge is in is a `conflict`, and changes nothing.',
    body: {
      event: eventToWire(EXAMPLE_CHANGE),
      owner: EXAMPLE_OWNER,
    } satisfies z.input<typeof advanceBody>,
    answer: { kind: 'ok', charge: settling },
  },
  changeCounters: {
    description:
      'Up to 100 changes, each atomic and durable, in their order. `identity` is a keyed digest. A change that is repeated under its `change_id` counts once.',
    body: {
      changes: [
        {
          ...{ kind: 'take', scope: 'free starter', window_start: 1769817600000, window_end: 1769904000000 },
          ...{ identity: 'kX0aP1c4l2S8b0qVZr3wTnYe', change_id: 'change-1', limit: 50, identities: 100000 },
          ...{ group: null, group_identities: 16 },
        },
      ],
    } satisfies z.input<typeof counterChangesWire>,
    answer: { results: [{ kind: 'counted', used: 1 }] } satisfies z.input<typeof counterResultsWire>,
  },
  drawOnPass: {
    description:
      'Up to 100 changes of one pass, each atomic and durable, in their order. A use names its request by `use_id` and `owner`: a change that is repeated with them is the same change, and a reservation that was given up is never made later.',
    body: {
      changes: [
        {
          ...{ kind: 'reserve', use_id: 'use_5vJ0cS0kq1mYw2a7', owner: EXAMPLE_OWNER, amount: '1' },
          ...{ lease_ms: EXAMPLE_LEASE_MS, key: null },
          of: { plan_id: 'starter', route_id: EXAMPLE_PASS.route_id, kind: 'uses', currency: 'USD' },
        },
      ],
    } satisfies z.input<typeof drawChangesWire>,
    answer: {
      results: [{ kind: 'reserved', use_id: 'use_5vJ0cS0kq1mYw2a7', left: '98', terms_id: 'hundred', worth: '0' }],
    } satisfies z.input<typeof drawResultsWire>,
  },
  findPasses: {
    description: 'At most 256, with their books. `gone` counts uses that were given back because the client left.',
    answer: { data: [EXAMPLE_PASS] } satisfies z.input<typeof keptPassesWire>,
  },
  listRevocations: {
    description: 'Passes that have not ended. `after` is in milliseconds since the epoch.',
    answer: {
      data: [{ id: EXAMPLE_PASS.id, revoked_at: 1769862600000, ends_at: EXAMPLE_PASS.ends_at }],
    } satisfies z.input<typeof revokedPassesWire>,
  },
  renewLeases: {
    description:
      'Ids of charges and of uses of passes. A charge whose lease ran out may be taken over by another sidecar; a use is given back.',
    body: { owner: EXAMPLE_OWNER, ids: [charge.id], lease_ms: EXAMPLE_LEASE_MS } satisfies z.input<typeof renewalsBody>,
    answer: { ids: [charge.id] } satisfies z.input<typeof renewedWire>,
  },
  takeTotals: {
    description:
      'Sent every 10 seconds and at a stop, each batch under the next number of its source until it was taken. The same number again changes nothing; a number that never came is logged and shown. Rows of minutes are of all routes, rows of hours of one route; a row `sale` is what a plan did in an hour.',
    body: {
      source: 'qZ3vJ1m8Xc2LbT4d',
      seq: 42,
      rows: [
        {
          ...{ step: 'minute', start: AT, requests: { free: 40, paid: 6, payment_required: 12 } },
          overhead: [0, 2, 31, 15, 6, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        },
        { step: 'hour', start: AT, route_id: route.id, requests: { paid: 6, payment_required: 12 } },
      ],
      status: {
        ...{ name: 'edge-1', version: '0.1.0', since: AT, revision: 7, ready: true, reasons: [], ending: false },
      },
    } satisfies z.input<typeof totalsBody>,
  },
} as const;

const TRYING = {
  tryRequest: {
    description:
      'Decided by the code of the proxy. A 402 in `answer` is one that it would write: its charge id holds. Nothing is counted or stored.',
    answer: {
      ...{ target: '/reports/q3', problem: null, matched: true, payment_required: true, route },
      params: { wildcard: 'q3' },
      because: [{ route_id: route.id, route_pattern: '/reports/*', method: 'GET', wins: true, why: 'wins' }],
      ...{
        answer: null,
        plan: null,
        reason: 'No proxy runs in this process, so who is paid and how is not known here.',
        curl: null,
      },
    } satisfies z.input<typeof tryBody>,
  },
  describePattern: {
    description:
      'Read and matched by the code of the proxy. A pattern that cannot be read is no error here: `valid` is false and `problem` says why. `shadows` are routes of the same method that cover paths of it.',
    answer: {
      ...{ valid: true, problem: null, key: '/reports/{*}', existing_id: null },
      ...{ matches: ['/reports', '/reports/2026', '/reports/2026/q3'], not: ['/reportss', '/'] },
      shadows: [{ route_id: route.id, by_whom: 'this one' }],
    } satisfies z.input<typeof patternBody>,
  },
} as const;

const apiKey: KeyView = {
  ...{ id: '4f1d2c3b4a596877', name: 'production-eu', scopes: ['sdk', 'ledger'], where: 'store' },
  ...{ created_at: AT, created_by: 'ana@example.com', last_used_at: null, revoked_at: null },
};

const KEYS = {
  listApiKeys: {
    description: 'Keys of the configuration come first, without an id: only its file can take them away.',
    answer: { data: [{ ...apiKey, last_used_at: AT }] } satisfies z.input<typeof keyList>,
  },
  createApiKey: {
    description: '`key` is told once: only its SHA-256 is kept. At most 200 keys are live.',
    body: { name: 'production-eu', scopes: ['sdk', 'ledger'] } satisfies z.input<typeof keyBody>,
    answer: {
      ...apiKey,
      key: 'tg_4f1d2c3b4a596877_0000000000000000000000000000000000000000000',
    } satisfies z.input<typeof newKey>,
  },
  revokeApiKey: {
    description: 'Holds from the next request, in every process of the store, and ends streams of the key.',
  },
} as const;

const ATTENTION = {
  listAttention: {
    description:
      'Of all processes on the store and of the sidecars that report to it. An empty list: nothing is known to be wrong.',
    answer: {
      data: [
        {
          ...{ code: 'facilitator_failing', severity: 'page', subject: 'facilitator.example.com' },
          detail:
            'The facilitator facilitator.example.com is left alone (slow). Payments are answered 503 until it is back: name a second facilitator.',
          ...{ count: 1, since: AT, link: '/desk/receivers' },
        },
      ],
      checked_at: LATER,
    } satisfies z.input<typeof attentionList>,
  },
} as const;

const AUDIT = {
  listAudit: {
    description:
      'Filters apply together and are exact. An entry is written with its change: there is none without the other. Refused sign-ins of one address are counted together, hour by hour.',
    answer: {
      data: [
        {
          ...{ id: '1204', at: AT, actor: 'ana@example.com', via: 'session', kind: 'route.updated', subject: route.id },
          subject_name: 'GET /reports/*',
          ...{ from: { amount: '0.10' }, to: { amount: '0.25' }, request_id: null },
        },
      ],
      next_cursor: null,
    } satisfies z.input<typeof auditList>,
  },
} as const;

const HOUSE = {
  listReceivers: {
    description:
      'Receivers of the configuration of this process; those of sidecars are in their own. `status` of a facilitator is `resting` while it is left alone, `unauthorized` if it takes no call of this account, `failing` if the last call got no usable answer, and `unasked` before the first. Looking asks what was not heard of for a minute again, in the background.',
    answer: {
      data: [
        {
          id: 'default',
          ways: [
            {
              ...{ scheme: 'exact', network: charge.network, network_name: 'base-sepolia', testnet: true },
              ...{ asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', symbol: 'USDC', decimals: 6 },
              pay_to_address: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C',
              address_url: 'https://sepolia.basescan.org/address/0x209693Bc6afc0C5328bA36FaF03C514EF312287C',
              facilitators: [
                {
                  ...{ host: 'facilitator.example.com', auth: 'bearer', status: 'failing', since: AT },
                  ...{ last_error: 'it did not answer in time', p50_ms: 180.5 },
                },
              ],
              rpc: { host: 'sepolia.base.org', status: 'ok' },
            },
          ],
          currencies: ['USD', 'USDC'],
          routes: 12,
        },
      ],
    } satisfies z.input<typeof receiverList>,
  },
  checkReceiver: {
    description:
      'What `tollgate check --online` finds for this receiver: facilitators, their word on a payment that cannot be valid, and nodes. No money moves. Once per receiver and 10 seconds.',
    answer: {
      ok: true,
      findings: [
        { level: 'ok', detail: 'the facilitator facilitator.example.com serves exact on eip155:84532' },
        { level: 'ok', detail: 'the token on eip155:84532 is what is configured' },
      ],
      checked_at: AT,
    } satisfies ReceiverCheck,
  },
  listSidecars: {
    description:
      'Sidecars that hand counts over or hold a stream here, the workers of one as one; those that stopped are left out. `behind` counts changes of routes. `ready` is null if a sidecar says nothing of itself: then its key lacks the scope `ledger`, and its requests are in no sum. At most 1,000.',
    answer: {
      data: [
        {
          ...{ name: 'api-7d9f', version: '0.1.0', address: '10.0.0.7', since: AT, last_seen: LATER },
          ...{ revision: 41, behind: 1, ready: true, reasons: [] },
        },
      ],
    } satisfies z.input<typeof sidecarList>,
  },
} as const;

const EVENT_ID = 'evt_0f8d2c9b7a6e4d5c8b1a2f3e4d5c6b7a';

const WEBHOOKS = {
  listWebhooks: {
    description:
      'Endpoints come from the configuration alone. `failing`: the last attempt failed; `disabled`: it answered 410, or for five days nothing of the kind 2xx, and nothing is sent.',
    answer: {
      data: [
        {
          ...{ id: 'books', host: 'hooks.example.com', events: ['charge.settled', 'charge.failed'], status: 'failing' },
          ...{ since: AT, waiting: 2, oldest_waiting_at: AT, last_success_at: AT, last_error: 'it answered 500' },
        },
      ],
    } satisfies z.input<typeof webhookList>,
  },
  listWebhookDeliveries: {
    description:
      'Taken events are kept for 7 days, those given up for 30, those that wait for a disabled endpoint for 7. An event of a charge waits until every earlier one of it was taken or given up.',
    answer: {
      data: [
        {
          ...{ event_id: EVENT_ID, type: 'charge.settled', subject: charge.id, created_at: AT, status: 'waiting' },
          next_attempt_at: LATER,
          attempts: [{ at: AT, status: 500, duration_ms: 41, body: 'out of memory' }],
        },
      ],
      next_cursor: null,
    } satisfies z.input<typeof deliveryList>,
  },
  testWebhook: {
    description: 'An event of the type `test`, whatever types the endpoint wants. Deliveries say what became of it.',
    answer: { event_id: EVENT_ID } satisfies z.input<typeof sentEvent>,
  },
  enableWebhook: {
    description:
      'All that waits is due at once, by a new schedule. An endpoint that is not disabled is left as it is but for that.',
    answer: { id: 'books' } satisfies z.input<typeof enabledWebhook>,
  },
  retryWebhookDelivery: {
    description:
      'For an event that was given up, one that waits, or one that was taken and lost there. Its id stays the same.',
    answer: { event_id: EVENT_ID } satisfies z.input<typeof sentEvent>,
  },
} as const;

const ABOUT = {
  getHealth: {
    description: 'Says only that the process answers; whether it could take a payment is its admin listener’s to say.',
    answer: { status: 'ok', version: '0.1.0', timestamp: AT } satisfies z.input<typeof health>,
  },
  getVersionedDocument: document,
  getDocument: document,
} as const;

const SIGNED_IN = {
  ...{ subject: 'ops@example.com', role: 'admin', via: 'link', expires_at: LATER, version: '0.1.0', testnet: false },
} as const;
const CODE = 'kJ3vWq0m7cQ1c8mYk3p0y1n2aZxT5uR9sVbLqWeDf4G';

const DESK = {
  getDeskSession: {
    description: 'The page for owners asks it first. A 401 says in `sign_in` how people may sign in.',
    answer: SIGNED_IN,
  },
  openDeskSession: {
    description:
      'Sets the cookie of the session; `key` goes with every call, in `Tollgate-Desk`. The cookie alone opens nothing.',
    body: { code: CODE },
    answer: { ...SIGNED_IN, key: CODE },
  },
  endDeskSession: { description: 'The session, its streams and its cookie end at once.' },
  allowDeskDownload: {
    description: 'A link in a browser sends no header: this one is good once, for a minute, with the cookie.',
    body: { path: '/v1/billing/charges.csv?from=2026-06-01T00:00:00Z&to=2026-07-01T00:00:00Z' },
    answer: { url: `/desk/downloads/${CODE}` },
  },
  startOidcSignIn: {
    description:
      'For a browser. `to` is a view of the desk with its query, `/desk/` if it is anything else. Sets a cookie for ten minutes. If the provider does not answer, it leads to `/desk/#error=provider_away`.',
  },
  finishOidcSignIn: {
    description:
      'For a browser that `/desk/oidc/start` sent away. Sets the cookie of a session and leads to `to` with `#key=`, or to `/desk/` with `#error=` and one of `provider_away`, `refused`, `not_allowed`, `flow_unknown` and `too_many`.',
  },
  createDeskLink: {
    description: 'What `tollgate desk --url` asks for: good once, for 5 minutes.',
    body: { role: 'viewer', as: 'accounting' },
    answer: { url: `https://desk.example.com/desk/#code=${CODE}`, expires_at: LATER },
  },
} as const;

export const EXPLAINED: Readonly<Record<string, Example>> = {
  ...DESK,
  ...DASHBOARD,
  ...SDK,
  ...BILLING,
  ...LEDGER,
  ...KEYS,
  ...HOUSE,
  ...WEBHOOKS,
  ...TRYING,
  ...ATTENTION,
  ...AUDIT,
  ...ABOUT,
};
