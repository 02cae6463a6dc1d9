// The role of somebody whom an OpenID provider vouches for, by the lists of the configuration: an exact value of the claim,
// or everybody of a domain.
import type { DeskRole } from '../store/desk-ports.ts';
import type { OidcSettings } from './desk-settings.ts';

type Lists = Pick<OidcSettings, 'admins' | 'viewers'>;

/** Undefined: on neither list. */
export function roleOfMembers(members: readonly string[], { admins, viewers }: Lists): DeskRole | undefined {
  const isOn = (list: readonly string[]): boolean => members.some((member) => isCovered(list, member));
  if (isOn(admins)) return 'admin';
  return isOn(viewers) ? 'viewer' : undefined;
}

/** Those that a list covers: what else a provider says about somebody is nobody's business. */
export function coveredMembers(members: readonly string[], { admins, viewers }: Lists): readonly string[] {
  return members.filter((member) => isCovered(admins, member) || isCovered(viewers, member));
}

function isCovered(list: readonly string[], member: string): boolean {
  return list.some((entry) => covers(entry, member));
}

/** `*@example.com` covers what has exactly one `@`, with a name before it. */
function covers(entry: string, member: string): boolean {
  if (!entry.startsWith('*@')) return entry === member;
  const [name, domain, ...rest] = member.split('@');
  return name !== '' && rest.length === 0 && domain?.toLowerCase() === entry.slice(2).toLowerCase();
}
