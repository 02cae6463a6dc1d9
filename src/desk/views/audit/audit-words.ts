// Words of the audit log: its kinds, how somebody was known, and where in the desk a subject stands.

export const KINDS = [
  ...['route.created', 'route.updated', 'route.deleted', 'api_key.created', 'api_key.revoked'],
  ...['session.created', 'session.refused', 'session.ended', 'receiver.checked'],
  ...['webhook.tested', 'webhook.enabled', 'webhook.disabled', 'webhook.retried'],
  ...['charge.settled', 'charge.failed', 'charge.refunded', 'pass.revoked', 'config.taken', 'config.refused'],
] as const;

export const WAYS: Readonly<Record<string, string>> = {
  jwt: 'by a token',
  session: 'in the desk',
  link: 'by a link',
  oidc: 'by single sign-on',
  api_key: 'by an API key',
  command_line: 'on the command line',
  configuration: 'in the file',
  tollgate: '',
};

export function wayText(via: string): string {
  return WAYS[via] ?? `by ${via.replaceAll('_', ' ')}`;
}

/** Undefined: it has no place of its own. */
export function placeOf(kind: string, subject: string): string | undefined {
  if (kind.startsWith('route.')) return `/desk/routes/${encodeURIComponent(subject)}`;
  if (kind.startsWith('charge.')) return `/desk/charges/${encodeURIComponent(subject)}`;
  if (kind.startsWith('pass.')) return `/desk/passes/${encodeURIComponent(subject)}`;
  if (kind.startsWith('api_key.')) return '/desk/keys';
  if (kind.startsWith('webhook.')) return `/desk/keys?webhook=${encodeURIComponent(subject)}`;
  return kind.startsWith('receiver.') ? '/desk/receivers' : undefined;
}
