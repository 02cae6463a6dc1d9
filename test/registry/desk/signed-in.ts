// Somebody who is signed in to the desk of a registry of a test: by a link, as a browser on its page would be.
import { createRandom } from '../../../src/host/clock.ts';
import { makeDeskLink } from '../../../src/registry/desk/desk-links.ts';
import type { DeskSettings } from '../../../src/registry/desk/desk-settings.ts';
import type { DeskRole } from '../../../src/registry/store/desk-ports.ts';
import { keepSecret } from '../../support/canaries.ts';
import type { Kit } from '../kit.ts';

/** The desk of a registry on loopback, as it is where the configuration says nothing of it. */
export const DESK: DeskSettings = {
  ...{ publicUrl: undefined, signIn: ['link', 'token'], oidc: undefined, testnet: true },
  session: { idleMs: 8 * 3_600_000, maxMs: 24 * 3_600_000 },
};

/** The code of a link that was made for `subject`. */
export async function linkCode(kit: Kit, role: DeskRole, subject = 'ann'): Promise<string> {
  const deps = { store: kit.store.desk, random: createRandom(), now: kit.clock.now };
  const link = await makeDeskLink(deps, `http://127.0.0.1:${kit.port}`, { subject, role });
  if (link === 'full') throw new Error('there are as many links as there may be');
  return new URL(link.url).hash.slice('#code='.length);
}

/** The headers that a browser on the desk's page sends with every call of the session. */
export async function signIn(kit: Kit, role: DeskRole = 'admin'): Promise<Record<string, string>> {
  const origin = `http://127.0.0.1:${kit.port}`;
  const opened = await kit.ask('POST', '/desk/session', {
    body: { code: await linkCode(kit, role) },
    headers: { Origin: origin },
  });
  if (opened.status !== 200) throw new Error(`signing in was answered ${opened.status}`);
  const { key } = JSON.parse(opened.body.toString()) as { key: string };
  const [cookie = ''] = String(opened.headers['set-cookie']).split(';', 1);
  keepSecret('a session’s key', key);
  keepSecret('a session’s cookie', cookie.slice(cookie.indexOf('=') + 1));
  return { Cookie: cookie, 'Tollgate-Desk': key, 'Sec-Fetch-Site': 'same-origin' };
}
