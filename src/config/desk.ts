// The keys of `registry.desk`: where the owners' page is served, who may sign in there and how. Left out, the desk is on
// where nobody but this machine or a private network reaches it, and one-time links of `tollgate desk` open it.
import { z } from 'zod';
import { isLoopback, isNearby, parseListen, type Listen } from './addresses.ts';
import { choice, described, duration, hostOf, parseUrl, text, whatStands } from './fields.ts';
import { key, section } from './keys.ts';
import { isMap, valueAt, type Issue, type Path } from './problems.ts';

const WAYS = ['link', 'token', 'oidc'] as const;
const EIGHT_HOURS_MS = 8 * 3_600_000;
const DAY_MS = 24 * 3_600_000;
const LONGEST_MS = 30 * DAY_MS;
const ORIGIN = 'the origin that people type, such as https://desk.example.com';
const ISSUER = 'the https URL of the issuer, as it names itself, without /.well-known/...; http only to loopback';
const MEMBER = 'a value of the claim, such as ops@example.com, or "*@example.com" for a whole domain';

/** `value` of the claim, or `*@` and a domain. */
function member() {
  return text(
    MEMBER,
    (value) => /^[^\x00-\x1f\x7f-\x9f]{1,254}$/.test(value) && (!value.includes('*') || /^\*@[^*@\s]+$/.test(value)),
  );
}

const oidc = section({
  issuer: key('issuer', text(ISSUER, isIssuer), 'The OpenID provider that says who somebody is.'),
  client_id: key('clientId', text('the id of this client at the provider'), 'The id of this client there.'),
  client_secret: key(
    'clientSecret',
    text('the secret of this client at the provider').optional(),
    'The secret of this client there. Left out: a public client.',
  ),
  scopes: key(
    'scopes',
    z
      .array(text('a scope, such as email', (value) => /^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/.test(value)))
      .refine((scopes) => scopes.includes('openid'), { error: 'lacks openid, without which no identity comes' })
      .default(['openid', 'email']),
    'What the provider is asked for.',
  ),
  claim: key(
    'claim',
    text('the name of a claim, such as email, sub or groups', (value) => /^[\x21-\x7e]{1,128}$/.test(value)).default(
      'email',
    ),
    'The claim that says who somebody is; `email` counts only with `email_verified`.',
  ),
  admins: key('admins', z.array(member()).default([]), 'Who may do all: a value of the claim, or "*@example.com".'),
  viewers: key('viewers', z.array(member()).default([]), 'Who may look and change nothing.'),
});

const keys = section({
  public_url: key(
    'publicUrl',
    text(ORIGIN, (value) => parseUrl(value)?.origin === value).optional(),
    'The origin under which people open the desk. Left out: localhost, or a private address, and the port of the listener.',
  ),
  sign_in: key(
    'signIn',
    z.array(choice(WAYS)).optional(),
    'How people sign in. Left out: `link` and `token`, and `oidc` with its section. An empty list: the desk is not served.',
  ),
  session: key(
    'session',
    section({
      idle: key('idleMs', duration(60_000, LONGEST_MS).prefault('8h'), 'A session that nobody uses ends after it.'),
      max: key('maxMs', duration(60_000, LONGEST_MS).prefault('24h'), 'Every session ends after it.'),
    }).prefault({}),
    'How long a session lasts.',
  ),
  oidc: key('oidc', oidc.optional(), 'Signing in with an OpenID provider.'),
});

/** The section, or `false` for none. */
export function deskSection() {
  const off = (value: unknown): unknown => (value === false ? { sign_in: [] } : value);
  return described(z.preprocess(off, keys), 'a section, or false').optional();
}

type DeskSection = z.output<typeof keys>;
/** What is in force: `signIn` is never empty. */
type DeskConfig = Omit<DeskSection, 'signIn'> & { readonly signIn: readonly (typeof WAYS)[number][] };

/** The desk of a registry; undefined if it serves none. */
export function deskOf({
  desk,
  listen,
}: {
  readonly desk?: DeskSection | undefined;
  readonly listen: Listen;
}): DeskConfig | undefined {
  if (desk === undefined) {
    if (!isNearby(listen.host)) return undefined;
    const session = { idleMs: EIGHT_HOURS_MS, maxMs: DAY_MS };
    return { publicUrl: undefined, oidc: undefined, session, signIn: ['link'] };
  }
  const signIn = desk.signIn ?? ['link', 'token', ...(desk.oidc === undefined ? [] : (['oidc'] as const))];
  return signIn.length === 0 ? undefined : { ...desk, signIn };
}

/** Rules of the section that need more than one key. */
export function deskIssues(raw: Readonly<Record<string, unknown>>): Issue[] {
  const path: Path = ['registry', 'desk'];
  const desk = valueAt(raw, path);
  if (!isMap(desk)) return desk === undefined || desk === false ? [] : [{ path, message: wrongKind(desk) }];
  const issues: Issue[] = [];
  const { public_url: publicUrl, sign_in: signIn, oidc: provider } = desk;
  const says = (way: string): boolean => Array.isArray(signIn) && signIn.includes(way);
  const listen = valueAt(raw, ['registry', 'listen']);
  const host = typeof listen === 'string' ? parseListen(listen)?.host : '127.0.0.1';
  const isOff = Array.isArray(signIn) && signIn.length === 0;
  if (publicUrl === undefined && !isOff) {
    const at = [...path, 'public_url'];
    if (provider !== undefined || says('oidc'))
      issues.push({ path: at, message: `is missing; the provider sends people back there: write ${ORIGIN}` });
    else if (host !== undefined && !isNearby(host))
      issues.push({
        path: at,
        message: `is missing; registry.listen is neither loopback nor private: write ${ORIGIN}, or desk: false`,
      });
  }
  if (says('oidc') && provider === undefined)
    issues.push({ path: [...path, 'sign_in'], message: 'names oidc without its section; add oidc, or take it out' });
  if (isMap(provider) && isEmptyList(provider['admins']) && isEmptyList(provider['viewers']))
    issues.push({
      path: [...path, 'oidc'],
      at: 'key',
      message: 'names nobody who may come in; write admins or viewers',
    });
  return issues;
}

function wrongKind(value: unknown): string {
  return `${whatStands(value)}; write a section, or false`;
}

function isEmptyList(value: unknown): boolean {
  return value === undefined || (Array.isArray(value) && value.length === 0);
}

function isIssuer(value: string): boolean {
  const parsed = parseUrl(value);
  if (parsed === undefined || parsed.pathname.includes('/.well-known/')) return false;
  return parsed.protocol === 'https:' || isLoopback(hostOf(parsed));
}
