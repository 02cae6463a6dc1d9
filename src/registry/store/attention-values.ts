// Findings that need somebody as the columns of a store and back, the same for every kind of store, and as webhooks tell them.
import {
  isAttentionCode,
  type AttentionEntry,
  type AttentionPlan,
  type AttentionRow,
} from '../../domain/attention/attention.ts';
import type { AttentionEventType } from '../../domain/webhooks/event-types.ts';
import { integer, text, type Row } from './rows.ts';

/** Columns in the order in which `attentionValues` binds them; the first three are the key. */
export const ATTENTION_COLUMNS = [
  ...['source', 'code', 'subject', 'severity', 'detail', 'found', 'link', 'since', 'seen_at'],
] as const;

export function attentionValues(row: AttentionRow): (string | number)[] {
  const { source, code, subject, severity, detail, count, link, since, seenAt } = row;
  return [source, code, subject, severity, detail.slice(0, 2_000).toWellFormed(), count, link, since, seenAt];
}

/** Rows with a code of a newer version are left out. */
export function readAttention(rows: readonly Row[]): AttentionRow[] {
  return rows.flatMap((row) => {
    const code = text(row, 'code');
    if (!isAttentionCode(code)) return [];
    const severity = text(row, 'severity') === 'page' ? 'page' : 'ticket';
    return [
      {
        ...{ code, severity, source: text(row, 'source'), subject: text(row, 'subject'), detail: text(row, 'detail') },
        ...{ count: integer(row, 'found'), link: text(row, 'link') },
        ...{ since: integer(row, 'since'), seenAt: integer(row, 'seen_at') },
      },
    ];
  });
}

/** An entry as the desk and webhooks show it. */
export function viewAttention({ code, severity, subject, detail, count, link, since }: AttentionEntry) {
  const about = { subject: subject === '' ? null : subject, link: link === '' ? null : link };
  return { code, severity, ...about, detail, count, since: new Date(since).toISOString() };
}

/** What webhooks are told of a plan. */
export function attentionEvents({ raised, cleared }: AttentionPlan): readonly {
  readonly type: AttentionEventType;
  readonly subject: string;
  readonly content: string;
}[] {
  const told = (type: AttentionEventType, entry: AttentionEntry) => ({
    ...{ type, subject: `${entry.code} ${entry.subject}`.trim(), content: JSON.stringify(viewAttention(entry)) },
  });
  return [
    ...cleared.map((entry) => told('attention.cleared', entry)),
    ...raised.map((entry) => told('attention.raised', entry)),
  ];
}
