// Cookies of the desk. A browser sends them to every port of a host, so that none of them opens anything alone. With https a
// cookie's name binds it to its host; plain http has a name of its own, because some browsers take no secure cookie there.

type DeskCookie = 'session' | 'flow';

const NAMES: Readonly<Record<DeskCookie, { readonly secure: string; readonly plain: string }>> = {
  session: { secure: '__Host-tollgate', plain: 'tollgate_desk' },
  flow: { secure: '__Host-tollgate_flow', plain: 'tollgate_flow' },
};
/** Another port of the host may have set cookies of this name as well; more than these are not looked at. */
const MOST_VALUES = 4;
const VALUE = /^[\w-]{43}$/;

function cookieName(cookie: DeskCookie, isSecure: boolean): string {
  return NAMES[cookie][isSecure ? 'secure' : 'plain'];
}

/** Values that a Cookie header has under the name of `cookie`, those of the right form. */
export function readCookie(header: string | undefined, cookie: DeskCookie, isSecure: boolean): readonly string[] {
  const name = cookieName(cookie, isSecure);
  const values = (header ?? '').split(';').flatMap((pair) => {
    const at = pair.indexOf('=');
    return at > 0 && pair.slice(0, at).trim() === name ? [pair.slice(at + 1).trim()] : [];
  });
  return values.filter((value) => VALUE.test(value)).slice(0, MOST_VALUES);
}

/** A Set-Cookie; an empty `value` takes it away. */
export function writeCookie(cookie: DeskCookie, value: string, isSecure: boolean, seconds?: number): string {
  const age = value === '' ? 0 : seconds;
  return [
    `${cookieName(cookie, isSecure)}=${value}`,
    'Path=/',
    'HttpOnly',
    // The provider leads back from another site: a strict cookie would not come along.
    `SameSite=${cookie === 'session' ? 'Strict' : 'Lax'}`,
    ...(isSecure ? ['Secure'] : []),
    ...(age === undefined ? [] : [`Max-Age=${age}`]),
  ].join('; ');
}
