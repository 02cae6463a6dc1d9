// The form in which a dialect hands an answer on. An allow says nothing that the answer of the upstream could inherit. What is no
// allow goes out as the proxy would send it, or, for nginx's auth_request, as a 403 that carries all of it in headers.
import type { Permit } from '../../domain/decide.ts';
import type { Refusals } from '../../host/listener-refusals.ts';
import type { OwnResponse } from '../../host/respond.ts';
import { arePlain, linesOf } from '../../host/write-batch.ts';
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

type AllowSettings = {
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

/** Makes the answers that let a request pass: only a Permit leads to one. */
export function createAllow({ rules, pass, secretHeader }: AllowSettings): (facts: AllowFacts) => OwnResponse {
  const { dialect } = rules;
  const forProxy = (permit: Pick<Permit, 'headers'>): readonly string[] => {
    if (dialect === 'nginx_accel') return ['X-Accel-Redirect', pass];
    return dialect === 'envoy' ? ['X-Envoy-Auth-Headers-To-Remove', removedBy(permit, secretHeader)] : [];
  };
  const forFree = forProxy({ headers: [] });
  const freeLines = arePlain(forFree) ? linesOf(forFree) : undefined;
  return ({ target, permit, receipt }) => {
    if (permit.headers.length === 0 && receipt.length === 0) return new FreeAllow(target, forFree, freeLines);
    const headers = ['Tollgate-Decision', 'allow', 'Tollgate-Target', target, ...permit.headers, ...receipt];
    return { status: 200, headers: [...headers, ...forProxy(permit)], body: '' };
  };
}

/** An allow that says nothing of a payment. A class, because most questions get one, and hardly any needs its headers but as lines. */
class FreeAllow implements OwnResponse {
  readonly status = 200;
  readonly body = '';
  readonly bodyBytes = 0;
  private readonly target: string;
  private readonly added: readonly string[];
  private readonly addedLines: string | undefined;

  constructor(target: string, added: readonly string[], addedLines: string | undefined) {
    this.target = target;
    this.added = added;
    this.addedLines = addedLines;
  }

  get headers(): readonly string[] {
    return ['Tollgate-Decision', 'allow', 'Tollgate-Target', this.target, ...this.added];
  }

  /** A canonical target is visible ASCII; what is added was checked. */
  get lines(): string | undefined {
    const { target, addedLines } = this;
    if (addedLines === undefined) return undefined;
    return `Tollgate-Decision: allow\r\nTollgate-Target: ${target}\r\n${addedLines}`;
  }
}

/** Credentials of a client, which are not for the upstream. */
const CREDENTIALS = ['payment-signature', 'x-payment', 'tollgate-pass', 'sign-in-with-x'];

function removedBy({ headers }: Pick<Permit, 'headers'>, secretHeader: string): string {
  const set = new Set(headers.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()));
  return [...FACTS.filter((name) => !set.has(name)), ...CREDENTIALS, secretHeader].join(', ');
}

/** Puts an answer that is no allow into the form of the dialect. */
export function denialForm(response: OwnResponse, { answersInHeaders }: DialectRules): OwnResponse {
  return answersInHeaders ? inHeaders(response) : response;
}

/** Puts what a listener refuses by itself into the form of the dialect. */
export function refusalForms(refusals: Refusals, rules: DialectRules): Refusals {
  const formed = Object.entries(refusals).map(([kind, refusal]) => [kind, denialForm(refusal, rules)]);
  return Object.fromEntries(formed) as Refusals;
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
