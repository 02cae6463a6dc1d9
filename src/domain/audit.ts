// The audit log: who changed what, and who was refused. An entry names members that changed and no others, and never a secret.
// Stores write it in the transaction of the change, so that no entry is without its change and no change without its entry.

export const AUDIT_KINDS = [
  ...['route.created', 'route.updated', 'route.deleted', 'api_key.created', 'api_key.revoked'],
  ...['session.created', 'session.refused', 'session.ended', 'receiver.checked'],
  ...['webhook.tested', 'webhook.enabled', 'webhook.disabled', 'webhook.retried'],
  ...['charge.settled', 'charge.failed', 'charge.refunded', 'pass.revoked', 'config.taken', 'config.refused'],
] as const;
export type AuditKind = (typeof AUDIT_KINDS)[number];

/** Ways in which somebody was known. `link`: a one-time link to the desk; `tollgate`: nobody, it was done by itself. */
export const AUDIT_WAYS = [
  ...['jwt', 'session', 'link', 'oidc', 'api_key', 'command_line', 'configuration', 'tollgate'],
] as const;
export type AuditWay = (typeof AUDIT_WAYS)[number];

/** Who is behind a change. `actor`: a token's or session's subject, a key's id or name, a user of this machine. */
export type AuditCause = {
  readonly actor: string;
  readonly via: AuditWay;
  /** Id of the request, if its caller gave one. */
  readonly requestId: string | null;
};

/** Values by name: what is JSON. */
export type AuditMembers = Readonly<Record<string, unknown>>;

/** Members as they were and as they are. */
export type AuditChange = { readonly from: AuditMembers; readonly to: AuditMembers };

/** `subject`: the id of what it is about; empty if there is none. */
export type AuditEntry = AuditCause &
  AuditChange & {
    /** Milliseconds since the epoch. */
    readonly at: number;
    readonly kind: AuditKind;
    readonly subject: string;
  };

/** Cause of a change that says of none. */
export const NOBODY: AuditCause = { actor: '', via: 'tollgate', requestId: null };

const MOST_CHARACTERS = 1_000;
const MOST_MEMBERS = 100;

/** The members that differ, with what they were and what they are; null and absent are alike. */
export function differingMembers(before: AuditMembers, after: AuditMembers): AuditChange {
  const from: Record<string, unknown> = {};
  const to: Record<string, unknown> = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [was, is] = [before[name] ?? null, after[name] ?? null];
    if (JSON.stringify(was) === JSON.stringify(is)) continue;
    if (Object.hasOwn(before, name)) from[name] = was;
    if (Object.hasOwn(after, name)) to[name] = is;
  }
  return { from, to };
}

/** JSON of members, cut to what an entry may hold. */
export function membersJson(members: AuditMembers): string {
  const kept = Object.entries(members).slice(0, MOST_MEMBERS);
  return JSON.stringify(Object.fromEntries(kept), (_name, value: unknown) =>
    typeof value === 'string' ? clipped(value) : typeof value === 'bigint' ? value.toString() : value,
  );
}

function clipped(text: string): string {
  return text.length <= MOST_CHARACTERS ? text.toWellFormed() : `${text.slice(0, MOST_CHARACTERS - 1).toWellFormed()}…`;
}
