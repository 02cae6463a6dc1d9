// Delivers the answer to a signed payment. The payment is kept before it is sent, and sent again as it is until the
// whole answer is here. Then the answer is kept in its place. Nothing in this file signs anything.
import type { PageData } from '../domain/payment/page-data.ts';
import { answerSection, liveAnswer, shownOf, type LiveAnswer, type ShownAnswer } from './answer.ts';
import { withChargeId } from './charge-id.ts';
import { fromBase64, toBase64, type TabStore, type TabAnswer, type TabPayment, type PaidReceipt } from './kept.ts';
import { isText, kindOf, sizeOf } from './kinds.ts';
import { LOST, type ToldProblem } from './told-problem.ts';
import { receive, type ReceivedBody } from './receive.ts';
import { receiptNodes, supportLink } from './receipt.ts';
import { money, wayOf, type Accept } from './required.ts';
import { sendPayment, type AnswerHead, type AnswerStream, type PriceDemand } from './send.ts';
import type { Action, View } from './view.ts';
import { secondsUntilAsked } from './wait.ts';
import { answeredWords, failedWords, inWords, laterWords, UNREADABLE_PLACE } from './words.ts';

/** Larger answers are not kept for a reload. */
const KEPT_BYTES = 1024 * 1024;
const NOT_KEPT = 'It is too large to be kept in this tab: save it before you leave.';
/** An answer that takes longer is shown as it comes. */
const LIVE_AFTER_MS = 400;

export type DeliveryDeps = {
  readonly data: PageData;
  readonly view: View;
  readonly kept: TabStore;
  /** Puts an answer on the page, in the place of the one before. `isPaid`: money was taken, and the page says so. */
  readonly place: (answer: HTMLElement | undefined, isPaid?: boolean) => void;
  /** A payment gets nothing more: something else is asked for. */
  readonly demanded: (payment: TabPayment, told: PriceDemand) => void;
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

  /** Sends a payment, which was sent `asked` times before. */
  async send(payment: TabPayment, asked = 0): Promise<void> {
    const { kept, view, place, demanded } = this.deps;
    const isKept = kept.write(payment);
    guardLeaving(!isKept);
    if (asked === 0) place(undefined);
    const sentences = asked === 0 ? ['Your signed payment was sent.'] : [];
    view.showCard({
      ...{ headline: asked === 0 ? 'Waiting for the answer' : 'Asking again with the same payment', busy: true },
      sentences: isKept ? sentences : [...sentences, 'This browser keeps nothing: leave the page open.'],
    });
    const told = await sendPayment(payment.header);
    const named = (by: AnswerHead | ToldProblem): TabPayment => withChargeId(payment, by, this.deps.data, Date.now());
    switch (told.kind) {
      case 'answer':
        return this.receive(named(told.head), told, asked);
      case 'later':
        return this.sendLater(named(told.problem), told.problem, asked + 1);
      case 'failed':
        return this.fail(named(told.problem), told.problem);
      case 'elsewhere':
        return view.showCard({ ...UNREADABLE_PLACE, actions: [this.again(payment)] });
      case 'demand':
        this.forget();
        place(undefined);
        return demanded(payment, told);
      default:
        return told satisfies never;
    }
  }

  private again(payment: TabPayment): Action {
    return { says: 'Ask again with the same payment', run: () => void this.send(payment, 1), primary: true };
  }

  // The answer, as it comes.

  private async receive(payment: TabPayment, begun: AnswerStream, asked: number): Promise<void> {
    const { head } = begun;
    const live = liveAnswer(head.type, () => receiving.stop());
    const receiving = receive(begun, (piece, size) => {
      if (size > KEPT_BYTES) guardLeaving(true);
      live.add(piece, size);
    });
    let isShown = false;
    const timer = setTimeout(
      () => {
        isShown = true;
        this.showLive(payment, head, live);
      },
      kindOf(head.type) === 'events' ? 0 : LIVE_AFTER_MS,
    );
    const received = await receiving.done;
    clearTimeout(timer);
    const shown = await shownOf(head, received);
    if (received.end === 'whole') return this.finish(payment, head, shown);
    // A stream that was looked at is not begun anew by itself.
    if (received.end === 'stopped' || (isShown && received.size > 0))
      return this.cutOff(payment, head, received, shown);
    this.sendLater(payment, LOST, asked + 1);
  }

  private showLive(payment: TabPayment, head: AnswerHead, live: LiveAnswer): void {
    const { view, place } = this.deps;
    const { accept } = payment;
    const receipt = receiptOf(payment, head);
    const sentences = isText(kindOf(head.type)) ? [] : ['It is shown, or can be saved, when all of it is here.'];
    view.showCard({
      ...{ headline: receipt === undefined ? 'The answer comes' : 'Paid: the answer comes', busy: true, sentences },
      more: receiptNodes(this.deps.data, accept, receipt),
    });
    place(live.section, receipt !== undefined);
  }

  /** Part of an answer: stopped by a click, or broken off. */
  private async cutOff(
    payment: TabPayment,
    head: AnswerHead,
    received: ReceivedBody,
    shown: ShownAnswer,
  ): Promise<void> {
    const { accept } = payment;
    const receipt = receiptOf(payment, head);
    const isStopped = received.end === 'stopped';
    const record = recordOf(payment, head, shown, receipt);
    // An answer that the user stopped is kept: it is all they wanted. One that broke off is not, so that a reload asks
    // for it again.
    const isKept = isStopped && this.keep(record, shown);
    const { view, place, data } = this.deps;
    view.showCard({
      ...{ headline: isStopped ? 'Stopped' : 'The connection broke', tone: isStopped ? 'ok' : 'warn' },
      sentences: [
        `${sizeOf(received.size)} came. ${this.taken(accept, receipt)}`,
        'The same payment may bring it once more, without another charge.',
        ...(isStopped && !isKept ? [NOT_KEPT] : []),
      ],
      more: receiptNodes(data, accept, receipt),
      actions: [{ ...this.again(payment), primary: !isStopped }],
    });
    place(answerSection('What came of the answer', shown), receipt !== undefined);
  }

  private taken(accept: Accept, receipt: PaidReceipt | undefined): string {
    return receipt === undefined ? 'Nothing was charged for it.' : `${this.money(accept)} was taken for it.`;
  }

  private money(accept: Accept): string {
    const way = wayOf(this.deps.data, accept);
    return way === undefined ? 'The price' : money(way, accept.amount);
  }

  // Cards shown if there is no answer.

  private sendLater(payment: TabPayment, problem: ToldProblem, asked: number): void {
    const { view, place, data } = this.deps;
    const { accept } = payment;
    const words = laterWords(problem, this.money(accept), Date.now());
    const isCharged = problem.charged === true;
    const more = receiptNodes(data, accept, receiptOf(payment, problem));
    place(undefined, isCharged);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const send = (times: number): void => {
      clearTimeout(timer);
      void this.send(payment, times);
    };
    const ask: Action = { says: 'Ask again now', run: () => send(1), primary: true };
    const seconds = secondsUntilAsked(problem, asked);
    if (seconds === undefined) return view.showCard({ ...words, more, actions: [ask] });
    timer = setTimeout(() => send(asked), seconds * 1000);
    const when = `It is asked again in ${inWords(seconds)}.`;
    // The server gives the same response until then, so there is no button.
    const actions = isCharged && problem.seconds !== undefined ? [] : [ask];
    view.showCard({ ...words, sentences: [...(words.sentences ?? []), when], more, actions });
  }

  private fail(payment: TabPayment, problem: ToldProblem): void {
    const { accept } = payment;
    const { view, place, data, anew } = this.deps;
    const { owed = false, charged, transaction, code } = problem;
    const isCharged = owed || charged === true || transaction !== undefined || code === 'already_paid';
    // An owed payment stays in the tab, so that a reload shows again what is owed.
    if (!owed) this.forget();
    const named = { transaction, charge: payment.charge };
    const receipt = isCharged ? named : undefined;
    view.showCard({
      ...failedWords(problem, this.money(accept)),
      more: [...receiptNodes(data, accept, receipt), ...(owed ? supportLink(problem.support, named) : [])],
      actions: isCharged ? [] : [{ says: 'Start a new payment', run: anew }],
    });
    place(undefined, isCharged);
  }

  private async finish(payment: TabPayment, head: AnswerHead, shown: ShownAnswer): Promise<void> {
    const receipt = receiptOf(payment, head);
    // A request that was not charged, or failed after it was, can be sent again with the same payment.
    if (receipt === undefined || head.status >= 500) return this.unfinished(payment, head, shown);
    const record = recordOf(payment, head, shown, receipt);
    const isKept = this.keep(record, shown);
    const sentences = isKept ? [] : [NOT_KEPT];
    this.showAnswer(record, shown, sentences);
  }

  /** Keeps an answer in the tab; false if it is on the page alone. */
  private keep(record: TabAnswer, { bytes }: ShownAnswer): boolean {
    const { kept } = this.deps;
    const isSmall = bytes !== undefined && bytes.length <= KEPT_BYTES;
    const isKept = isSmall && kept.write({ ...record, body: toBase64(bytes) });
    if (!isKept) kept.write(record);
    guardLeaving(!isKept);
    return isKept;
  }

  private unfinished(payment: TabPayment, head: AnswerHead, shown: ShownAnswer): void {
    const { accept } = payment;
    const receipt = receiptOf(payment, head);
    const isPlace = kindOf(head.type) === 'place';
    this.deps.view.showCard({
      ...answeredWords(head.status, isPlace, receipt === undefined ? undefined : this.money(accept)),
      more: receiptNodes(this.deps.data, accept, receipt),
      actions: [{ ...this.again(payment), primary: !isPlace }],
    });
    const title = isPlace ? 'Where it points' : 'What the service answered';
    this.deps.place(answerSection(title, shown), receipt !== undefined);
  }

  /** Shows an answer that the tab kept, after a reload. */
  showKept(record: TabAnswer): void {
    const { body, type, name, size } = record;
    const paid = 'You paid for this in this tab.';
    if (body === null)
      return this.showAnswer(record, undefined, [`${paid} The answer (${sizeOf(size)}) was too large to be kept.`]);
    const bytes = fromBase64(body);
    const shown = { type, name, size, bytes, blob: new Blob([bytes], { type }) };
    this.showAnswer(record, shown, [`${paid} It is shown again without a new payment.`]);
  }

  private showAnswer(record: TabAnswer, shown: ShownAnswer | undefined, sentences: readonly string[]): void {
    const { view, place, anew, data } = this.deps;
    const { accept, receipt, status, type } = record;
    view.showCard({
      ...{ headline: status < 400 ? 'Paid' : `Paid: the service answered ${status}`, mood: 'ok', sentences },
      more: receiptNodes(data, accept, receipt),
      actions: [{ says: 'Pay again for a new answer', run: anew }],
    });
    const title = kindOf(type) === 'place' ? 'The answer is elsewhere' : 'The answer';
    const answer = shown === undefined ? undefined : answerSection(title, shown);
    place(answer, true);
    answer?.querySelector('h2')?.focus();
  }
}

function recordOf(
  { accept }: TabPayment,
  { status, type, name }: AnswerHead,
  { size }: ShownAnswer,
  receipt: PaidReceipt | undefined,
): TabAnswer {
  return { kind: 'answer', accept, receipt, status, type, name, size, body: null };
}

function receiptOf({ charge }: TabPayment, { transaction }: AnswerHead | ToldProblem): PaidReceipt | undefined {
  return transaction === undefined ? undefined : { transaction, charge };
}

function askBeforeLeaving(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

/** Whether leaving the page asks first: what is on it is kept nowhere else. */
function guardLeaving(on: boolean): void {
  if (on) addEventListener('beforeunload', askBeforeLeaving);
  else removeEventListener('beforeunload', askBeforeLeaving);
}
