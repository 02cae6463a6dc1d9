// The members of a configuration as the audit log shows them: what differs between two, and a name for what there is. What may be
// a secret is never shown, only that it changed; of a URL nothing but its origin, because the rest may be a key.
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config/config.ts';
import { parseUrl } from '../config/fields.ts';
import { describedKeys } from '../config/keys.ts';
import { createConfigSchema } from '../config/schema.ts';
import type { AuditChange } from '../domain/audit.ts';
import type { Receiver } from '../domain/payment/offer.ts';

/** What stands for a value that is not shown. */
const HIDDEN = '(hidden)';
const CHANGED = '(hidden, changed)';
const SECRET = /secret|key|token|password|jwt|header|auth|oidc|claim|attributes/i;

/** Routes have entries of their own, and receivers are told way by way. */
const TOLD_OTHERWISE = /^(?:routes|receivers)(?:\.|$)/;
const KEYS = describedKeys(createConfigSchema('')).filter(
  ({ path, names }) => !names.includes('') && !TOLD_OTHERWISE.test(path),
);

/** Values of a configuration by their path, as they are and as they are shown. */
type Member = { readonly raw: unknown; readonly shown: unknown };

export function configDifference(before: Config, after: Config): AuditChange {
  const [was, is] = [membersOf(before), membersOf(after)];
  const from: Record<string, unknown> = {};
  const to: Record<string, unknown> = {};
  for (const path of new Set([...was.keys(), ...is.keys()])) {
    const [old, next] = [was.get(path), is.get(path)];
    if (isDeepStrictEqual(old?.raw, next?.raw)) continue;
    if (old !== undefined) from[path] = old.shown;
    if (next !== undefined) to[path] = isDeepStrictEqual(old?.shown, next.shown) ? CHANGED : next.shown;
  }
  // A section that becomes something else in the program has no members of its keys there: it is told as a whole.
  for (const { path, names, isLeaf } of KEYS.toReversed()) {
    if (isLeaf || isDeepStrictEqual(valueAt(before, names), valueAt(after, names))) continue;
    const isTold = [...Object.keys(from), ...Object.keys(to)].some(
      (each) => each === path || each.startsWith(`${path}.`),
    );
    if (!isTold) to[path] = CHANGED;
  }
  return { from, to };
}

/** Name of a configuration by what is shown of it. */
export function configName(config: Config): string {
  const shown = [...membersOf(config)].map(([path, member]) => [path, member.shown]);
  return createHash('sha256').update(JSON.stringify(shown)).digest('hex').slice(0, 16);
}

function membersOf(config: Config): ReadonlyMap<string, Member> {
  const members = new Map<string, Member>();
  for (const { path, names, isLeaf } of KEYS) {
    const raw = valueAt(config, names);
    if (raw === undefined || (!isLeaf && !Array.isArray(raw))) continue;
    members.set(path, { raw, shown: shownOf(path, raw) });
  }
  for (const receiver of config.receivers)
    members.set(`receivers.${receiver.id}`, { raw: receiver, shown: linesOf(receiver) });
  return members;
}

function shownOf(path: string, value: unknown): unknown {
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  if (typeof value === 'bigint') return value.toString();
  if (SECRET.test(path)) return HIDDEN;
  if (typeof value === 'string') return withoutSecret(value);
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.map(withoutSecret);
  return HIDDEN;
}

function withoutSecret(text: string): string {
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? parseUrl(text) : undefined;
  if (url !== undefined) return url.origin;
  return text.includes('://') ? HIDDEN : text;
}

/** A line for each way of a receiver: where its money goes, and who settles it. */
function linesOf({ ways, currencies }: Receiver): readonly string[] {
  return ways.map(({ way, facilitators }) => {
    const hosts = facilitators.map(({ url }) => new URL(url).host).join(', ');
    return `${currencies.join(' ')}: ${way.scheme} ${way.network} ${way.asset} to ${way.payTo} by ${hosts}`;
  });
}

function valueAt(config: Config, names: readonly string[]): unknown {
  return names.reduce<unknown>((value, name) => (isSection(value) ? value[name] : undefined), config);
}

function isSection(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
