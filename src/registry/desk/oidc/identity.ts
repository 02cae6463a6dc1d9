// Who an OpenID provider says that somebody is: the values of the configured claim, and a name to show.

export type Claims = Readonly<Record<string, unknown>>;

/** Text without control characters: what a list of the configuration can name. */
const VALUE = /^[^\x00-\x1f\x7f-\x9f]{1,254}$/;
const MOST_OF_NAME = 128;

/** Values of `claim`, several if it is a list; none if it lacks, or is an email address that the provider did not verify. */
export function membersOf(claims: Claims, claim: string): readonly string[] {
  const value = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  if (claim === 'email' && claims['email_verified'] !== true) return [];
  return (Array.isArray(value) ? value : [value]).filter((each) => typeof each === 'string' && VALUE.test(each));
}

/** Names somebody to people: the claim, or where that is a list of groups the verified email address, or the subject. */
export function nameOf(claims: Claims, claim: string): string {
  const { [claim]: value, sub } = claims;
  const [email] = membersOf(claims, 'email');
  const name = typeof value === 'string' ? value : (email ?? String(sub));
  return name.slice(0, MOST_OF_NAME).toWellFormed();
}
