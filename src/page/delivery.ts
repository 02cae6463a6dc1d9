// From a signed payment to its answer. The payment is kept before it is sent, and sent again as it is until the whole
// answer is here. Then the answer is kept in its place. Nothing in here signs anything.
import type { PageData } from '../domain/page-data.ts';
import { answerSection, sizeOf, type Shown } from './answer.ts';
import { fromBase64, toBase64, type Kept, type TabAnswer, type TabPayment, type PaidReceipt } from './kept.ts';
import { isSameWay, money, type Accept } from './required.ts';
import { sendPayment, type PriceTold, type Failed, type Later, type Whole } from './send.ts';
import { copyButton, element, facts, short, type Action, type View } from './view.ts';
import { failedWords, laterWords } from './words.ts';

/** Larger answers are not kept for a reload. */
const KEPT_BYTES = 1024 * 1024;
/** How often the same payment is sent again without being told to. */
const ASKED_AGAIN = 10;
const LONGEST_WAIT_SECONDS = 30;

export type DeliveryDeps = {
  readonly data: PageData;
  readonly view: View;
  readonly kept: Kept;
  /** Puts an answer on the page, in the place of the one before. `isPaid`: the page says so. */
  readonly place: (answer: HTMLElement | undefined, isPaid?: boolean) => void;
  /** A payment gets nothing more: something else is asked for. */
  readonly demanded: (payment: TabPayment, told: PriceTold) => void;
  /** Somebody wants to pay anew. */
  readonly anew: () => void;
};

export class Delivery {
  private readonly deps: DeliveryDeps;

  constructor(deps: DeliveryDeps) {
    this.deps = deps;
  }

  /** Clears what was kept. */
  forget(): void {
    this.deps.kept.clear();
    guardLeaving(false);
  }

  /** `asked`: how often it was before. */
  async send(payment: TabPayment, asked = 0): Promise<void> {
    const { kept, view, place, demanded } = this.deps;
    const isKept = kept.write(payment);
    guardLeaving(!isKept);
    place(undefined);
    const lines = asked === 0 ? ['Your signed payment was sent. The answer may take a moment.'] : [];
    view.show({
      ...{ title: asked === 0 ? 'Waiting for the answer' : 'Asking again with the same payment', busy: true },
      lines: isKept ? lines : [...lines, 'This browser keeps nothing: leave the page open.'],
    });
    const told = await sendPayment(payment.header, (bytes) => view.note(`${sizeOf(bytes)} received`));
    switch (told.kind) {
      case 'answer':
        return this.finish(payment, told);
      case 'later':
        return this.sendLater(payment, told, asked + 1);
      case 'failed':
        return this.fail(payment, told);
      case 'demand':
        this.forget();
        return demanded(payment, told);
      default:
        return told satisfies never;
    }
  }

  private sendLater(payment: TabPayment, told: Later, asked: number): void {
    const { view } = this.deps;
    const words = laterWords(told);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const send = (times: number): void => {
      clearTimeout(timer);
      void this.send(payment, times);
    };
    const actions: readonly Action[] = [{ label: 'Ask again now', run: () => send(1), primary: true }];
    if (asked > ASKED_AGAIN) return view.show({ ...words, actions });
    const seconds = Math.min(LONGEST_WAIT_SECONDS, Math.max(1, told.seconds ?? 2 ** Math.min(asked, 5)));
    timer = setTimeout(() => send(asked), seconds * 1000);
    const when = `It is asked again in ${seconds === 1 ? 'a second' : `${seconds} seconds`}.`;
    view.show({ ...words, lines: [...(words.lines ?? []), when], actions });
  }

  private fail({ accept }: TabPayment, told: Failed): void {
    this.forget();
    const { transaction } = told;
    const more = this.receipt(
      accept,
      transaction === undefined ? undefined : { transaction, charge: chargeOf(accept) },
    );
    this.deps.view.show({
      ...failedWords(told),
      more,
      actions: [{ label: 'Start a new payment', run: this.deps.anew }],
    });
  }

  private finish(payment: TabPayment, whole: Whole): void {
    const { accept } = payment;
    const { status, type, name, bytes, transaction } = whole;
    const receipt = transaction === undefined ? undefined : { transaction, charge: chargeOf(accept) };
    // A request that was not charged, or failed after it was, can be sent again with the same payment.
    if (receipt === undefined || status >= 500) return this.unfinished(payment, receipt, whole);
    const { kept } = this.deps;
    const record: TabAnswer = { kind: 'answer', accept, receipt, status, type, name, size: bytes.length, body: null };
    const isKept = bytes.length <= KEPT_BYTES && kept.write({ ...record, body: toBase64(bytes) });
    if (!isKept) kept.write(record);
    guardLeaving(!isKept);
    const lines = isKept ? [] : ['The answer is too large to be kept in this tab: save it before you leave.'];
    this.showAnswer(record, whole, lines);
  }

  private unfinished(payment: TabPayment, receipt: PaidReceipt | undefined, whole: Whole): void {
    const charged =
      receipt === undefined
        ? 'It came without a receipt, so nothing was charged for it.'
        : 'It was charged before it failed: asking again costs nothing more.';
    this.deps.view.show({
      ...{ title: `The service answered ${whole.status}`, tone: 'warn' },
      lines: [charged, 'Your signed payment is kept in this tab.'],
      more: this.receipt(payment.accept, receipt),
      actions: [{ label: 'Ask again with the same payment', run: () => void this.send(payment, 1), primary: true }],
    });
    this.deps.place(answerSection('What the service answered', whole));
  }

  /** After a reload. */
  showKept(record: TabAnswer): void {
    const { body, type, name, size } = record;
    const paid = 'You paid for this in this tab.';
    if (body === null)
      return this.showAnswer(record, undefined, [`${paid} The answer (${sizeOf(size)}) was too large to be kept.`]);
    const shown = { type, name, bytes: fromBase64(body) };
    this.showAnswer(record, shown, [`${paid} It is shown again without a new payment.`]);
  }

  private showAnswer(record: TabAnswer, shown: Shown | undefined, lines: readonly string[]): void {
    const { view, place, anew } = this.deps;
    const { accept, receipt, status } = record;
    view.show({
      ...{ title: status < 400 ? 'Paid' : `Paid: the service answered ${status}`, tone: 'ok', lines },
      more: this.receipt(accept, receipt),
      actions: [{ label: 'Pay again for a new answer', run: anew }],
    });
    const answer = shown === undefined ? undefined : answerSection('The answer', shown);
    place(answer, true);
    answer?.querySelector('h2')?.focus();
  }

  private receipt(accept: Accept, receipt: PaidReceipt | undefined): readonly Node[] {
    const way = this.deps.data.ways.find((each) => isSameWay(each, accept));
    if (receipt === undefined || way === undefined) return [];
    const { transaction, charge } = receipt;
    const { explorer } = way;
    const code = element('code', {}, short(transaction));
    const id = element('code', { class: 'long' }, charge);
    const target = { target: '_blank', rel: 'noreferrer' };
    return [
      facts([
        ['Amount', `${money(way, accept.amount)} on ${way.title}`],
        [
          'Transaction',
          explorer === undefined ? code : element('a', { href: `${explorer}/tx/${transaction}`, ...target }, code),
        ],
        ['Charge', id],
      ]),
      copyButton(id, 'Copy the charge id'),
    ];
  }
}

function chargeOf({ extra }: Accept): string {
  return extra['external_ref'] ?? '';
}

function askBeforeLeaving(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

/** Whether leaving the page asks first: what is on it is kept nowhere else. */
function guardLeaving(on: boolean): void {
  if (on) addEventListener('beforeunload', askBeforeLeaving);
  else removeEventListener('beforeunload', askBeforeLeaving);
}
