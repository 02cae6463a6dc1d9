// The form in which a dialect hands an answer on. An allow says nothing that the answer of the upstream could inherit. What is no
// allow goes out as the proxy would send it, or, for nginx's auth_request, as a 403 that carries all of it in headers.
import type { Permit } from '../../domain/decide.ts';
import type { OwnResponse } from '../../host/respond.ts';
import type { DialectRules } from './dialect-rules.ts';

/** Header block that nginx takes with `proxy_buffer_size 16k`, with room for what the connection adds. */
const MOST_HEADER_BYTES = 14 * 1024 - 512;
/** Characters of a description if the headers get too large, tried in this order. */
const SHORTER = [300, 100, 0];

export type AllowFacts = {
  /** Canonical target: what was decided, and is to be forwarded. */
  readonly target: string;
  readonly permit: Permit;
  /** Receipt for the client: flat name, value pairs. */
  readonly receipt: readonly string[];
};

export type AllowSettings = {
  readonly rules: DialectRules;
  /** The location of nginx that forwards. */
  readonly pass: string;
  /** Lower-cased. */
  readonly secretHeader: string;
};

/** Facts of ours for the upstream, which a client must not be able to send. */
const FACTS = [
  ...(['charge-id', 'use-id', 'route-id', 'payer', 'amount', 'currency', 'customer-id', 'network', 'access'] as const),
].map((name) => `tollgate-${name}`);

/** Makes the answer that lets a request pass: only a Permit leads here. */
export function allowResponse({ target, permit, receipt }: AllowFacts, settings: AllowSettings): OwnResponse {
  const headers = ['Tollgate-Decision', 'allow', 'Tollgate-Target', target, ...permit.headers, ...receipt];
  const { dialect } = settings.rules;
  if (dialect === 'nginx_accel') headers.push('X-Accel-Redirect', settings.pass);
  if (dialect === 'envoy') headers.push('X-Envoy-Auth-Headers-To-Remove', removedBy(permit, settings.secretHeader));
  return { status: 200, headers, body: '' };
}

/** Credentials of a client, which are not for the upstream. */
const CREDENTIALS = ['payment-signature', 'x-payment', 'tollgate-pass', 'sign-in-with-x'];

function removedBy({ headers }: Permit, secretHeader: string): string {
  const set = new Set(headers.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()));
  return [...FACTS.filter((name) => !set.has(name)), ...CREDENTIALS, secretHeader].join(', ');
}

/** Puts an answer that is no allow into the form of the dialect. */
export function denialForm(response: OwnResponse, { answersInHeaders }: DialectRules): OwnResponse {
  return answersInHeaders ? inHeaders(response) : response;
}

function inHeaders({ status, headers, body }: OwnResponse): OwnResponse {
  const whole = String(body);
  const head = [...headers, 'Tollgate-Status', `${status}`];
  const made = (text: string): string[] => [...head, 'Tollgate-Body', asHeader(text)];
  let all = made(whole);
  for (const length of SHORTER) {
    if (sizeOf(all) <= MOST_HEADER_BYTES) break;
    all = made(withShorterDescriptions(whole, length));
  }
  return { status: 403, headers: all, body: '' };
}

/** A JSON text as the bytes of a header, none of them a control character. */
function asHeader(text: string): string {
  const escaped = text.replace(/[\0-\x1f\x7f]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  return Buffer.from(escaped).toString('latin1');
}

function sizeOf(headers: readonly string[]): number {
  return headers.reduce((sum, part) => sum + part.length + 2, 0);
}

function withShorterDescriptions(body: string, length: number): string {
  try {
    return JSON.stringify(JSON.parse(body), (name, value: unknown) =>
      name === 'description' && typeof value === 'string' ? value.slice(0, length).toWellFormed() : value,
    );
  } catch {
    return body;
  }
}
