// `tollgate charges list | show | reconcile | refund | refunded`: shows charges from the store of the configuration, also while
// Tollgate runs. Listing only reads. It prints what the billing endpoints show, and nothing that could be replayed.
import { suggest } from '../domain/suggest.ts';
import { oneOf } from '../config/fields.ts';
import { CHARGE_ID } from '../domain/payment/charge.ts';
import { CHARGE_STATES } from '../domain/payment/charge-fields.ts';
import { AMOUNT_ADVICE, isPrice } from '../domain/payment/money.ts';
import { REFUND_REASON } from '../domain/payment/refund.ts';
import type { Receiver } from '../domain/payment/offer.ts';
import type { ChargeFilter } from '../domain/payment/reports.ts';
import type { ChargeView } from '../registry/charges/charge-schemas.ts';
import { NETWORKS, SPELLING } from '../gateway/rails/rails.ts';
import { storeAt } from '../registry/store/store-kinds.ts';
import { ledgerOf, type StoredLedger } from '../registry/store/stored-ledger.ts';
import type { Args } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { readIdPart, shortId } from '../domain/payment/quote.ts';
import { tableOf } from './table.ts';
import { everyCharge } from './every-charge.ts';
import { CONFIG_FLAG, loadFor, talk, type ConfigurationResult } from './configuration.ts';
import { messageOf } from '../host/error-message.ts';

const TRANSACTION = /^(?:0x[0-9a-fA-F]{1,128}|[1-9A-HJ-NP-Za-km-z]{32,128})$/;
const ACTIONS = ['list', 'show', 'reconcile', 'refund', 'refunded'] as const;
/** Flags that say something of one charge, and the action they belong to. */
const WORDS = new Map([
  ['fail', 'reconcile'],
  ['settled', 'reconcile'],
  ['note', 'refunded'],
  ['tx', 'refund'],
  ['amount', 'refund'],
  ['reason', 'refund'],
  ['unproven', 'refund'],
]);
/** Flags of `list`, and what the billing endpoint calls them. */
const FILTERS = new Map([
  ['status', 'status'],
  ['route', 'route_id'],
  ['network', 'network'],
  ['payer', 'payer'],
  ['customer', 'customer_id'],
  ['request', 'request_id'],
  ['transaction', 'transaction'],
  ['currency', 'currency'],
  ['receiver', 'receiver_id'],
  ['q', 'q'],
  ['from', 'from'],
  ['to', 'to'],
  ['limit', 'limit'],
]);

export const charges: Command = {
  name: 'charges',
  summary: 'list or show charges, or bring unfinished ones to their end',
  usage: [
    'tollgate charges list [--status S,S] [--owed] [--route ID] [--network NAME] [--payer 0x...] [--customer ID] [--request ID]',
    '  [--transaction TX] [--currency CODE] [--receiver ID] [--q TEXT] [--from TIME] [--to TIME] [--limit N] [--json]',
    'tollgate charges list --owed --csv [FILTERS]',
    'tollgate charges show ID [--json]',
    'tollgate charges reconcile [--json]',
    'tollgate charges reconcile ID --fail REASON | --settled TX',
    'tollgate charges refund ID --tx HASH [--amount A] [--reason TEXT] [--unproven]',
    'tollgate charges refunded ID [--note TEXT]',
    '',
    'reconcile asks the chain about charges whose end is not known; exit code 1 if some still have none.',
    'With --fail an operator says that the payment of a settling charge did not and will not move, with --settled that',
    'a transaction paid it, also of a failed one; refused if the chain can be read and says otherwise.',
    'refund records a transaction by which you gave all or a part of the money back. The chain has to show a transfer of the',
    "charge's token to its payer, of at least the amount, younger than the payment; --unproven takes your word for it.",
    'refunded: its money was given back outside Tollgate, of a charge that is owed or, as goodwill, of a delivered one. It is',
    'owed no more; revenue stays. An ID may be its beginning or its end.',
    'Newest first. A sidecar without charges.store has none of its own: ask where its registry runs.',
  ],
  examples: [
    'tollgate charges list --status settled,delivered --from 2026-01-31',
    'tollgate charges list --owed --json',
    'tollgate charges show chg_AaBbCcDdEeFf',
    'tollgate charges reconcile',
    'tollgate charges list --owed --csv',
    'tollgate charges refund chg_AaBbCcDdEeFf --tx 0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060',
    "tollgate charges refunded chg_AaBbCcDdEeFf --note 'by bank transfer'",
  ],
  actions: ACTIONS,
  flags: {
    ...CONFIG_FLAG,
    status: {
      value: 'STATE',
      choices: CHARGE_STATES,
      help: `list: one or several with commas of ${CHARGE_STATES.join(', ')}`,
    },
    owed: { help: 'list: paid for, and cannot be delivered any more' },
    route: { value: 'ID', help: 'list: of one route' },
    network: { value: 'NAME', help: 'list: of one network, by its name or CAIP-2' },
    payer: { value: '0x...', help: 'list: of one payer' },
    customer: { value: 'ID', help: 'list: of one customer' },
    request: { value: 'ID', help: 'list: claimed by one request' },
    transaction: { value: 'TX', help: 'list: paid by one transaction' },
    currency: { value: 'CODE', help: 'list: in one currency, such as USD' },
    receiver: { value: 'ID', help: 'list: of one receiver' },
    q: { value: 'TEXT', help: 'list: by a charge id or its beginning, a request id, a payer or a transaction' },
    from: { value: 'TIME', help: 'list: made at or after, such as 2026-01-31 or 2026-01-31T12:00:00Z' },
    to: { value: 'TIME', help: 'list: made before' },
    limit: { value: 'N', help: 'list: at most so many, 1 to 200 (50 if left out)' },
    fail: { value: 'REASON', help: 'reconcile: mark this charge as failed, for this reason' },
    settled: { value: 'TX', help: 'reconcile: mark this charge as settled by this transaction' },
    tx: { value: 'HASH', help: 'refund: the transaction that gave the money back' },
    amount: { value: 'A', help: 'refund: how much of it, such as 0.05 (all that is left if left out)' },
    reason: { value: 'TEXT', help: 'refund: kept with the charge' },
    unproven: { help: 'refund: record it by your word, without a look at the chain' },
    note: { value: 'TEXT', help: 'refunded: kept with the charge' },
    csv: { help: 'list --owed: print a file to pay from, a line for one transfer' },
    json: { help: 'print JSON' },
  },
  words: { min: 1, max: 2 },
  run: runCharges,
};

async function runCharges(args: Args, io: Io): Promise<ExitCode> {
  const [action = '', id, ...rest] = args.words;
  const wrong = findMistakes(action, id, rest, args);
  const filter = action === 'list' ? await readFilter(args) : { limit: 0 };
  const mistakes = 'mistakes' in filter ? [...wrong, ...filter.mistakes] : wrong;
  if (mistakes.length > 0 || 'mistakes' in filter) {
    for (const line of mistakes) io.err(line);
    return EXIT.usage;
  }
  const opened = await openConfiguredLedger(args, io);
  if (!opened.ok) return opened.code;
  const ledger = opened.config;
  try {
    if (action === 'list') return await list(ledger, filter, args, io);
    const { endCharge, reconcileCharges, refundCharge, UNKNOWN_CHARGE } = await import('./charges-reconcile.ts');
    if (id !== undefined) {
      const found = await findId(ledger, id);
      if (typeof found !== 'string') {
        io.err(found.many ? 'several charges have an id like this; give more of it' : UNKNOWN_CHARGE);
        return EXIT.no;
      }
      if (action === 'show') return await show(ledger, found, args, io);
      if (action === 'refund') {
        const { recordCommandRefund } = await import('./charges-refund.ts');
        const [transaction = '', amount, reason = ''] = [args.text('tx'), args.text('amount'), args.text('reason')];
        const request = { chargeId: found, transaction, amount, reason, isUnproven: args.has('unproven') };
        return await recordCommandRefund(ledger, request, await configuredReceivers(args, io), io);
      }
      if (action === 'refunded') return await refundCharge(ledger, found, args.text('note') ?? '', io);
      const [reason, transaction] = [args.text('fail'), args.text('settled')];
      const receivers = await configuredReceivers(args, io);
      if (reason !== undefined) return await endCharge(ledger, found, { kind: 'fail', reason }, receivers, io);
      if (transaction !== undefined)
        return await endCharge(ledger, found, { kind: 'settled', transaction }, receivers, io);
    }
    return await reconcileCharges(ledger, await configuredReceivers(args, io), args.has('json'), io);
  } catch (error) {
    io.err(messageOf(error));
    return EXIT.away;
  } finally {
    await ledger.close();
  }
}

/** The ledger in the configured store; the caller closes it. Complaints were written when it is not ok. */
async function openConfiguredLedger(args: Args, io: Io): Promise<ConfigurationResult<StoredLedger>> {
  const loaded = await loadFor(args, io);
  if (!loaded.ok) return loaded;
  const { registry, charges: section } = loaded.config;
  const named = registry?.store ?? section.store;
  if (named === undefined) {
    io.err(
      'This configuration keeps no charges, its registry does; run the command with the configuration of the registry.',
    );
    return { ok: false, code: EXIT.usage };
  }
  const store = await storeAt(named);
  if (!store.exists()) {
    io.err(`There is no store at ${named.name} yet; the first start makes it.`);
    return { ok: false, code: EXIT.away };
  }
  return { ok: true, config: ledgerOf(store.openCharges({ now: Date.now, log: talk(io) }), SPELLING) };
}

function findMistakes(action: string, id: string | undefined, rest: readonly string[], args: Args): string[] {
  if (!ACTIONS.some((known) => known === action)) {
    const meant = suggest(action, ACTIONS);
    return [`charges: is followed by ${oneOf(ACTIONS)}${meant === undefined ? '' : `; did you mean ${meant}?`}`];
  }
  const mistakes: string[] = [];
  if (action === 'list' ? id !== undefined : rest.length > 0) mistakes.push(`charges ${action}: has a word too many`);
  for (const [flag, owner] of WORDS)
    if (args.has(flag) && action !== owner) mistakes.push(`--${flag}: is for charges ${owner}`);
  if (args.has('csv') && (action !== 'list' || !args.has('owed')))
    mistakes.push('--csv: is for charges list --owed; GET /v1/billing/charges.csv has the others');
  if (args.has('csv') && args.has('json')) mistakes.push('charges list: takes --csv or --json, not both');
  if (action === 'list') return mistakes;
  if (action === 'reconcile') {
    const words = Number(args.has('fail')) + Number(args.has('settled'));
    if (words === 2) mistakes.push('charges reconcile: takes --fail or --settled, not both');
    else if ((id === undefined) !== (words === 0))
      mistakes.push('charges reconcile: an id goes with --fail REASON or --settled TX');
    const transaction = args.text('settled');
    if (transaction !== undefined && !TRANSACTION.test(transaction))
      mistakes.push('--settled: is not a transaction, 0x and hexadecimal digits or base58');
  } else if (id === undefined)
    mistakes.push(`charges ${action}: needs the id of a charge; \`tollgate charges list\` shows them`);
  if (action === 'refund') mistakes.push(...findRefundMistakes(args));
  if (args.has('owed')) mistakes.push('--owed: is for charges list');
  for (const flag of FILTERS.keys()) if (args.has(flag)) mistakes.push(`--${flag}: is for charges list`);
  return mistakes;
}

function findRefundMistakes(args: Args): string[] {
  const [transaction, amount, reason = ''] = [args.text('tx'), args.text('amount'), args.text('reason')];
  const mistakes: string[] = [];
  if (transaction === undefined)
    mistakes.push('charges refund: needs --tx HASH, the transaction that gave the money back');
  else if (!TRANSACTION.test(transaction))
    mistakes.push('--tx: is not a transaction, 0x and hexadecimal digits or base58');
  if (amount !== undefined && !isPrice(amount)) mistakes.push(`--amount: is not ${AMOUNT_ADVICE}`);
  if (!REFUND_REASON.test(reason)) mistakes.push('--reason: is not one line of at most 200 characters');
  return mistakes;
}

/** Finds the id of the charge that `given` names; `many` says whether several or none fit. */
async function findId(ledger: StoredLedger, given: string): Promise<string | { readonly many: boolean }> {
  if (CHARGE_ID.test(given) && (await ledger.get(given)) !== undefined) return given;
  const part = readIdPart(given);
  const found = part === undefined ? [] : await ledger.search({ idPart: part }, 2);
  const [only] = found;
  return only !== undefined && found.length === 1 ? only.id : { many: found.length > 1 };
}

async function configuredReceivers(args: Args, io: Io): Promise<ReadonlyMap<string, Receiver>> {
  const loaded = await loadFor(args, io);
  return new Map(loaded.ok ? loaded.config.receivers.map((receiver) => [receiver.id, receiver]) : []);
}

async function readFilter(args: Args): Promise<ChargeFilter | { readonly mistakes: readonly string[] }> {
  const { chargesQuery } = await import('../registry/charges/charge-schemas.ts');
  const given = [...FILTERS].flatMap(([flag, name]) => {
    const value = args.text(flag);
    if (value === undefined) return [];
    return [[name, flag === 'network' ? (NETWORKS.find(value)?.caip2 ?? value) : value] as const];
  });
  if (args.has('owed')) given.push(['owed', 'true']);
  const read = chargesQuery.safeParse(Object.fromEntries(given));
  if (!read.success) {
    const flags = new Map([...FILTERS].map(([flag, name]) => [name, flag]));
    return {
      mistakes: read.error.issues.map(
        ({ path, message }) => `--${flags.get(String(path[0])) ?? ''}: is not ${message}`,
      ),
    };
  }
  const { readFilter: readQuery } = await import('../registry/charges/charge-filter.ts');
  const { limit } = read.data;
  const reading = readQuery(read.data, SPELLING);
  if (reading.kind === 'unreadable') return { mistakes: [`--q: is not ${reading.message}`] };
  return { ...reading.filter, limit };
}

async function list(ledger: StoredLedger, filter: ChargeFilter, args: Args, io: Io): Promise<ExitCode> {
  if (args.has('csv')) return listOwedCsv(ledger, filter, { isAll: args.text('limit') === undefined, io });
  const { viewCharge } = await import('../registry/charges/charge-view.ts');
  const page = await ledger.list(filter);
  const all = page.charges.map((charge) => viewCharge(charge, NETWORKS));
  if (args.has('json')) io.out(JSON.stringify(all));
  else {
    if (all.length === 0) io.err('no charges');
    else for (const line of tableOf(COLUMNS, all.map(rowOf))) io.out(line);
  }
  if (page.nextBefore !== undefined) io.err(`there are more; --to ${all.at(-1)?.created_at ?? ''} shows older ones`);
  return EXIT.fine;
}

/** All of what is owed unless a limit is given: a file to pay from lacks nothing. */
async function listOwedCsv(
  ledger: StoredLedger,
  filter: ChargeFilter,
  { isAll, io }: { readonly isAll: boolean; readonly io: Io },
): Promise<ExitCode> {
  const { owedHeader, owedLine } = await import('../registry/charges/owed-csv.ts');
  io.out(owedHeader().trimEnd());
  const charges = isAll ? everyCharge(ledger, filter) : (await ledger.list(filter)).charges;
  for await (const charge of charges) io.out(owedLine(charge).trimEnd());
  return EXIT.fine;
}

async function show(ledger: StoredLedger, id: string, args: Args, io: Io): Promise<ExitCode> {
  const { viewCharge } = await import('../registry/charges/charge-view.ts');
  const charge = await ledger.get(id);
  if (charge === undefined) {
    io.err('no charge has this id; `tollgate charges list` shows them');
    return EXIT.no;
  }
  const view = viewCharge(charge, NETWORKS);
  if (args.has('json')) io.out(JSON.stringify(view));
  else {
    const { meaningOf } = await import('./charge-meaning.ts');
    for (const [name, value] of Object.entries(view)) io.out(`${name}: ${textOf(value)}`);
    io.out(meaningOf(view, Date.now()));
  }
  return EXIT.fine;
}

/** Refunds are objects: as JSON on one line. */
function textOf(value: ChargeView[keyof ChargeView]): string {
  if (value === null || (Array.isArray(value) && value.length === 0)) return '-';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const COLUMNS = ['ID', 'STATE', 'PRICE', 'ROUTE', 'PAYER', 'MADE'];

/** Ids by their ends, which `show` and `why` take; whole ones are in --json. */
function rowOf(charge: ChargeView): string[] {
  const { id, status, amount, currency, route_method, route_pattern, payer, created_at, owed } = charge;
  const state = owed === null ? status : `${status}, owed (${owed})`;
  return [shortId(id), state, `${amount} ${currency}`, `${route_method} ${route_pattern}`, payer, created_at];
}
