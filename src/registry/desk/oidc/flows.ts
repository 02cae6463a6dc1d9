// Sign-ins on their way through an OpenID provider. Each is a cookie of one browser and a ticket in the store, good once and
// for ten minutes, so that any process that shares the store takes the provider's answer.
import { timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import type { DeskStore } from '../../store/desk-ports.ts';
import { digestOf } from '../secret-codes.ts';
import { flowSecretsOf, type FlowSecrets } from './flow-secrets.ts';

export const FLOW_MS = 10 * 60_000;
/** Anybody may begin one: far more than people do in ten minutes. */
const MOST_FLOWS = 10_000;

const flow = z.object({
  /** Path of the desk to which it leads. */
  to: z.string(),
  /** Issuer and client for which it was begun. */
  issuer: z.string(),
  clientId: z.string(),
});
type Flow = z.output<typeof flow>;

type FlowDeps = { readonly store: DeskStore; readonly now: () => number };

/** Begins the sign-in of the browser that gets `cookie`. */
export async function beginFlow({ store, now }: FlowDeps, cookie: string, begun: Flow): Promise<'added' | 'full'> {
  const at = now();
  const ticket = { kind: 'flow', digest: digestOf(cookie), holder: '', content: JSON.stringify(begun) } as const;
  return store.addTicket({ ...ticket, endsAt: at + FLOW_MS }, MOST_FLOWS, at);
}

/** The secrets of the sign-in that `state` belongs to, among those of these cookies; undefined: it was begun elsewhere. */
export function findFlow(
  cookies: readonly string[],
  state: string,
): { readonly cookie: string; readonly secrets: FlowSecrets } | undefined {
  for (const cookie of cookies) {
    const secrets = flowSecretsOf(cookie);
    if (isSame(secrets.state, state)) return { cookie, secrets };
  }
  return undefined;
}

/** Takes a sign-in's ticket; undefined if it was taken, is over or never was. */
export async function takeFlow({ store, now }: FlowDeps, cookie: string): Promise<Flow | undefined> {
  const content = await store.takeTicket({ kind: 'flow', digest: digestOf(cookie), holder: '' }, now());
  return content === undefined ? undefined : flow.parse(JSON.parse(content));
}

function isSame(one: string, other: string): boolean {
  return timingSafeEqual(digestOf(one), digestOf(other));
}
