// Headers about passes: those by which a request presents one, and those that hand one over. A token is a bearer's: it is
// never logged, and a cookie counts only for requests of this site, so that another one's page cannot use what it cannot read.
import { problem, type Problem } from '../../../domain/problem.ts';
import { PASS_TOKEN } from '../../../domain/selling/pass-token.ts';

export const PASS_HEADER = 'Tollgate-Pass';
export const PASS_LEFT_HEADER = 'Tollgate-Pass-Left';
const COOKIE = 'tollgate_pass';
const SIGN_IN_BYTES = 4096;

/** What a request presents; undefined members: nothing of that kind. */
export type ShownPass = {
  readonly token: string | undefined;
  /** Value of SIGN-IN-WITH-X, not read yet. */
  readonly signIn: string | undefined;
};

const NOTHING: ShownPass = { token: undefined, signIn: undefined };

/** Reads the headers of passes. Problem: `pass_malformed`. A cookie that is no token is nobody's mistake: it is not there. */
export function readShownPass(rawHeaders: readonly string[], takesCookie: boolean): ShownPass | Problem {
  let token: string | undefined;
  let signIn: string | undefined;
  let cookies = '';
  let site = '';
  let mode = '';
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const given = rawHeaders[i] ?? '';
    // Names of other lengths are none of these.
    if (given.length !== 13 && given.length !== 14 && given.length !== 6) continue;
    const value = rawHeaders[i + 1] ?? '';
    switch (given.toLowerCase()) {
      case 'tollgate-pass':
        if (token !== undefined) return malformed('The request carries more than one pass; send one.');
        if (!PASS_TOKEN.test(value)) return malformed('The pass is not one that was given here.');
        token = value;
        break;
      case 'sign-in-with-x':
        if (signIn !== undefined) return malformed('The request carries more than one sign-in; send one.');
        if (value === '' || value.length > SIGN_IN_BYTES)
          return malformed('The sign-in is empty or longer than 4 KiB.');
        signIn = value;
        break;
      case 'cookie':
        cookies += `; ${value}`;
        break;
      case 'sec-fetch-site':
        site = value;
        break;
      case 'sec-fetch-mode':
        mode = value;
        break;
    }
  }
  if (token === undefined && takesCookie && cookies.includes(COOKIE) && (site !== 'cross-site' || mode === 'navigate'))
    token = tokenInCookies(cookies);
  return token === undefined && signIn === undefined ? NOTHING : { token, signIn };
}

/** The token among cookies, if there is exactly one. */
function tokenInCookies(cookies: string): string | undefined {
  const found = cookies.split(';').flatMap((pair) => {
    const [name = '', value = ''] = pair.split('=', 2);
    return name.trim() === COOKIE ? [value.trim()] : [];
  });
  const [only = '', ...others] = found;
  return others.length === 0 && PASS_TOKEN.test(only) ? only : undefined;
}

function malformed(detail: string): Problem {
  return problem('pass_malformed', detail);
}

/** Headers that give a client its pass: flat name, value pairs. `left`: what is left of it, for people and programs. */
export function handOver(token: string, left: string): readonly string[] {
  return [PASS_HEADER, token, PASS_LEFT_HEADER, left];
}

/** The header that leaves a pass with a browser until its end. */
export function passCookie(token: string, leftSeconds: number, isSecure: boolean): readonly string[] {
  const life = `Max-Age=${Math.max(0, leftSeconds)}`;
  return ['Set-Cookie', `${COOKIE}=${token}; HttpOnly; SameSite=Lax; Path=/; ${life}${isSecure ? '; Secure' : ''}`];
}

/** Whole seconds until `endsAtMs`. */
export function secondsLeft(endsAtMs: number, nowMs: number): number {
  return Math.max(0, Math.ceil((endsAtMs - nowMs) / 1000));
}
