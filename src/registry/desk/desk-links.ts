// One-time links to the desk: a code after `#`, which browsers send to nobody, good once and for five minutes. Whoever opens
// one is signed in with the role and under the name that it was made for.
import { z } from 'zod';
import type { Random } from '../../host/clock.ts';
import type { DeskRole, DeskStore } from '../store/desk-ports.ts';
import { digestOf, makeCode } from './secret-codes.ts';

const LINK_MS = 5 * 60_000;
const MOST_LINKS = 100;
/** Name of somebody who is signed in. */
export const DESK_NAME = /^[^\x00-\x1f\x7f-\x9f]{1,128}$/;

const linkContent = z.object({ subject: z.string(), role: z.enum(['admin', 'viewer']) });

type LinkDeps = { readonly store: DeskStore; readonly random: Random; readonly now: () => number };
export type DeskLink = { readonly url: string; readonly expiresAt: number };

/** `origin`: where the desk is served. */
export async function makeDeskLink(
  { store, random, now }: LinkDeps,
  origin: string,
  who: { readonly subject: string; readonly role: DeskRole },
): Promise<DeskLink | 'full'> {
  const code = makeCode(random);
  const at = now();
  const ticket = { kind: 'link', digest: digestOf(code), holder: '', content: JSON.stringify(who) } as const;
  const added = await store.addTicket({ ...ticket, endsAt: at + LINK_MS }, MOST_LINKS, at);
  return added === 'full' ? added : { url: `${origin}/desk/#code=${code}`, expiresAt: at + LINK_MS };
}

/** Takes a link's code; undefined if it is wrong, was used or is over. */
export async function takeDeskLink(
  { store, now }: Pick<LinkDeps, 'store' | 'now'>,
  code: string,
): Promise<z.output<typeof linkContent> | undefined> {
  const content = await store.takeTicket({ kind: 'link', digest: digestOf(code), holder: '' }, now());
  return content === undefined ? undefined : linkContent.parse(JSON.parse(content));
}
