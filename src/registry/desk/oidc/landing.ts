// Where a sign-in leads when it is done: a view of the desk with its query. Whatever else an address names, such as another
// site, leads to the first view, so that nobody can make a link of ours that ends elsewhere.
import { DESK, isView } from '../desk-page.ts';

const MOST_CHARACTERS = 2_048;
/** Path and query as a browser writes them: no backslash, no second `?` before the query, no fragment. */
const WRITTEN = /^(\/desk\/[\w./~%-]*)(\?[\x21\x24-\x5b\x5d-\x7e]*)?$/;

export function landingOf(to: string | undefined): string {
  if (to === undefined || to.length > MOST_CHARACTERS) return DESK;
  const path = WRITTEN.exec(to)?.[1];
  if (path === undefined || !isView(path)) return DESK;
  // A browser reads dots as steps up: what it would go to must be what stands here.
  return new URL(to, 'http://desk').pathname === path ? to : DESK;
}
