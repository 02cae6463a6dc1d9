// The receipt of a payment: amount, transaction and charge id; and whom to write to about it.
import type { PageData } from '../domain/payment/page-data.ts';
import type { PaidReceipt } from './kept.ts';
import { money, wayOf, type Accept } from './required.ts';
import { copyButton, element, facts, short } from './view.ts';

export function receiptNodes(data: PageData, accept: Accept, receipt: PaidReceipt | undefined): readonly HTMLElement[] {
  const way = wayOf(data, accept);
  if (receipt === undefined || way === undefined) return [];
  const { transaction, charge } = receipt;
  const { explorer } = way;
  const code = transaction === undefined ? undefined : element('code', {}, short(transaction));
  const id = charge === undefined ? undefined : element('code', { class: 'long' }, charge);
  const target = { target: '_blank', rel: 'noreferrer' };
  const shown =
    code === undefined || explorer === undefined
      ? code
      : element('a', { href: `${explorer}/tx/${transaction}`, ...target }, code);
  return [
    facts([
      ['Amount', `${money(way, accept.amount)} on ${way.chainName}`],
      ['Pass', way.keeps],
      ['Transaction', shown],
      ['Charge', id],
    ]),
    ...(id === undefined ? [] : [copyButton(id, 'Copy the charge id')]),
  ];
}

/** A link to the owner's help that names the charge, or else the transaction; none if the owner names no help. */
export function supportLink(support: string | undefined, { charge, transaction }: PaidReceipt): readonly HTMLElement[] {
  if (support === undefined) return [];
  const isMail = /^mailto:/i.test(support);
  const named = charge === undefined ? transaction && `Transaction ${transaction}` : `Charge ${charge}`;
  const subject = `${support.includes('?') ? '&' : '?'}subject=${encodeURIComponent(named ?? 'A payment')}`;
  const href = isMail ? support + subject : support;
  const label = isMail ? `Write to ${support.slice('mailto:'.length).replace(/\?.*$/s, '')}` : 'Get help';
  return [element('a', { class: 'button primary', href, rel: 'noreferrer' }, label)];
}
