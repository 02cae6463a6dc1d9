// The facilitators of a receiver: a URL, a short form whose keys stand in the environment, or a section. A setting that
// would send a key to the wrong place, or in the open, is refused here.
import { generateKeyPairSync } from 'node:crypto';
import { z } from 'zod';
import type { Facilitator, FacilitatorAuth } from '../domain/payment/offer.ts';
import { markedVariable, type Env } from './environment.ts';
import { choice, count, duration, flag, headerName, isSafeUrl, text, url } from './fields.ts';
import { isMap, type Issue, type Path } from './problems.ts';
import { KEY_FORMS, readSigningKey, type SigningKeyKind } from './signing-keys.ts';

/** The public facilitator of the x402 project; it serves test networks. */
const TEST_FACILITATOR = 'https://x402.org/facilitator';
/** Facilitators whose URL need not be written. */
const KNOWN_URLS: Readonly<Record<SigningKeyKind, string>> = {
  cdp: 'https://api.cdp.coinbase.com/platform/v2/x402',
  payai: 'https://facilitator.payai.network',
};
type Account = { readonly id: string; readonly secret: string };
/** The variables that short forms take their keys from. */
const ACCOUNTS: Readonly<Record<SigningKeyKind, Account>> = {
  cdp: { id: 'CDP_API_KEY_ID', secret: 'CDP_API_KEY_SECRET' },
  payai: { id: 'PAYAI_API_KEY_ID', secret: 'PAYAI_API_KEY_SECRET' },
};
export const ACCOUNT_VARIABLES: readonly string[] = Object.values(ACCOUNTS).flatMap(({ id, secret }) => [id, secret]);

const WHO = 'the http or https URL of an x402 facilitator, without query, or x402.org, cdp or payai';

/** Keys of `auth` by the kind that they belong to. */
const AUTH_KEYS = {
  bearer: ['token'],
  cdp: ['key_id', 'key_secret'],
  payai: ['key_id', 'key_secret'],
} as const;

const auth = z
  .strictObject({
    kind: choice(['bearer', 'cdp', 'payai']),
    token: text('the token that the facilitator gave out: visible ASCII characters, up to 8 KiB', (value) =>
      /^[\x21-\x7e]{1,8192}$/.test(value),
    ).optional(),
    key_id: text('the id of the key: visible ASCII characters', (value) =>
      /^[\x21-\x7e]{1,256}$/.test(value),
    ).optional(),
    key_secret: text('the secret of the key').optional(),
  })
  .transform((input, context): FacilitatorAuth => {
    const { kind, token = '', key_id: keyId = '', key_secret: secret = '' } = input;
    const complain = (path: string, message: string): void => {
      context.addIssue({ code: 'custom', path: [path], message });
    };
    const wanted: readonly string[] = AUTH_KEYS[kind];
    for (const key of ['token', 'key_id', 'key_secret'] as const) {
      if (input[key] === undefined && wanted.includes(key)) complain(key, `is missing; auth of kind ${kind} needs it`);
      if (input[key] !== undefined && !wanted.includes(key)) complain(key, `is not of kind ${kind}; take it out`);
    }
    if (kind === 'bearer') return { kind, token };
    // A made-up key stands in for one that only a server beside this process knows.
    if (markedVariable(secret) !== undefined) return { kind, keyId, key: generateKeyPairSync('ed25519').privateKey };
    const key = input.key_secret === undefined ? `is not ${KEY_FORMS[kind]}` : readSigningKey(kind, secret);
    if (typeof key !== 'string') return { kind, keyId, key };
    if (input.key_secret !== undefined) complain('key_secret', key);
    return z.NEVER;
  });

export const facilitatorSchema = z.preprocess(
  fillUrl,
  z
    .strictObject({
      url: url(WHO),
      headers: z
        .record(
          headerName('a header name of letters, digits and dashes'),
          text('a header value of visible ASCII characters', (value) => /^[\x20-\x7e\t]{1,4096}$/.test(value)),
        )
        .default({}),
      timeouts: z
        .strictObject({ verify: duration(1, 120_000).default(5000), settle: duration(1, 300_000).default(15_000) })
        .prefault({}),
      limits: z
        .strictObject({ calls: count(1, 10_000).default(512), waiting: count(0, 100_000).default(512) })
        .prefault({}),
      auth: auth.optional(),
      insecure: flag().optional(),
    })
    .superRefine(({ url: to, headers, auth: account, insecure }, context) => {
      const complain = (path: string[], message: string): void => {
        context.addIssue({ code: 'custom', path, message });
      };
      if (account === undefined) {
        if (insecure !== undefined) complain(['insecure'], 'stands without auth, where it says nothing; take it out');
        return;
      }
      for (const name of Object.keys(headers)) {
        if (name.toLowerCase() === 'authorization')
          complain(['headers', name], 'stands beside auth, which sends it too; keep one of the two');
      }
      if (insecure !== true && !isSafeUrl(to))
        complain(
          ['url'],
          'is plain http beyond this network, and auth would travel in the open; write https, or insecure: true beside auth',
        );
    }),
);
type FacilitatorInput = z.output<typeof facilitatorSchema>;

function fillUrl(value: unknown): unknown {
  if (typeof value === 'string') return { url: value };
  if (!isMap(value) || Object.hasOwn(value, 'url') || !isMap(value['auth'])) return value;
  const { kind } = value['auth'];
  return kind === 'cdp' || kind === 'payai' ? { url: KNOWN_URLS[kind], ...value } : value;
}

/** Makes a facilitator of the one at `receiver`. */
export function toFacilitator(input: FacilitatorInput, receiver: string): Facilitator {
  const { url: to, headers, timeouts, limits, auth: account } = input;
  return {
    url: to,
    headers,
    timeouts: { verifyMs: timeouts.verify, settleMs: timeouts.settle },
    limits,
    auth: account,
    account: account === undefined ? undefined : account.kind === 'bearer' ? receiver : account.keyId,
  };
}

/** Account that was written as a short form, and its place. */
type ExpandedAccount = { readonly path: Path; readonly account: Account };

type ShortForms = {
  readonly issues: readonly Issue[];
  /** An issue about what a short form stands for, said of the short form. */
  readonly written: (issue: Issue) => Issue;
};

/** Replaces the short forms in `data` (changing it) by what they stand for. */
export function expandShortForms(data: Readonly<Record<string, unknown>>, env: Env): ShortForms {
  const issues: Issue[] = [];
  const expanded: ExpandedAccount[] = [];
  for (const { list, path: of } of facilitatorLists(data)) {
    for (const [at, name] of list.entries()) {
      const path = [...of, at];
      if (name === 'x402.org') list[at] = { url: TEST_FACILITATOR };
      if (name !== 'cdp' && name !== 'payai') continue;
      const account = ACCOUNTS[name];
      expanded.push({ path, account });
      const unset = [account.id, account.secret].filter((variable) => !env[variable]);
      list[at] =
        unset.length > 0
          ? { url: KNOWN_URLS[name] }
          : { auth: { kind: name, key_id: env[account.id], key_secret: env[account.secret] } };
      if (name === 'cdp' && unset.length > 0) {
        const what =
          unset.length > 1 ? `${unset.join(' and ')} are not set; set them` : `${unset.join('')} is not set; set it`;
        issues.push({ path, message: `takes its key from the environment, where ${what}` });
      }
    }
  }
  const written = (issue: Issue): Issue => {
    const from = expanded.find(({ path }) => path.every((step, index) => step === issue.path[index]));
    if (from === undefined || issue.path.length === from.path.length) return issue;
    const variable = issue.path.at(-1) === 'key_id' ? from.account.id : from.account.secret;
    return { path: from.path, message: `takes ${variable} from the environment, which ${issue.message}` };
  };
  return { issues, written };
}

/** Lists of facilitators, of receivers and of their ways. */
function facilitatorLists(data: Readonly<Record<string, unknown>>): readonly { list: unknown[]; path: Path }[] {
  const holders = listOf(data['receivers']).flatMap((receiver, index) => {
    const path = ['receivers', index];
    const ways = isMap(receiver) ? listOf(receiver['accepts']) : [];
    return [{ holder: receiver, path }, ...ways.map((holder, at) => ({ holder, path: [...path, 'accepts', at] }))];
  });
  return holders.flatMap(({ holder, path }) =>
    isMap(holder) ? [{ list: listOf(holder['facilitators']), path: [...path, 'facilitators'] }] : [],
  );
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
