// The role of somebody whom an OpenID provider vouches for, by the lists of the configuration: an exact value of the claim,
// or everybody of a domain.
import type { DeskRole } from '../store/desk-ports.ts';
import type { OidcSettings } from './desk-settings.ts';

/** Undefined: on neither list. */
export function roleOfMembers(
  members: readonly string[],
  { admins, viewers }: Pick<OidcSettings, 'admins' | 'viewers'>,
): DeskRole | undefined {
  const isOn = (list: readonly string[]): boolean =>
    list.some((entry) => members.some((member) => covers(entry, member)));
  if (isOn(admins)) return 'admin';
  return isOn(viewers) ? 'viewer' : undefined;
}

/** `*@example.com` covers what has exactly one `@`, with a name before it. */
function covers(entry: string, member: string): boolean {
  if (!entry.startsWith('*@')) return entry === member;
  const [name, domain, ...rest] = member.split('@');
  return name !== '' && rest.length === 0 && domain?.toLowerCase() === entry.slice(2).toLowerCase();
}
