// The endpoints of signing in to the desk: a session is made, asked about and ended, a download is allowed, and a link is
// made for somebody by a token.
import { z } from 'zod';
import { problem } from '../../domain/problem.ts';
import { causeOf, requestIdOf } from '../auth/author.ts';
import {
  emptyResponse,
  fail,
  invalidBody,
  jsonResponse,
  type EndpointCall,
  type EndpointOutcome,
} from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import type { StoredSession } from '../store/desk-ports.ts';
import type { DeskDoor } from './desk-door.ts';
import { originOf } from './desk-host.ts';
import { DESK_NAME } from './desk-links.ts';

export const DESK_BODY_BYTES = 16 * 1024;

export const signInBody = z.strictObject({
  code: z.string().max(256).optional(),
  token: z.string().max(8192).optional(),
});
export const downloadBody = z.strictObject({
  path: z
    .string()
    .max(4096)
    // What a browser saves: a ticket without a header opens nothing else.
    .regex(/^\/v1\/billing\/[a-z]+\.csv(?:\?[\x21\x24-\x5b\x5d-\x7e]*)?$/, 'a file under /v1/billing/, with its query'),
});
export const linkBody = z.strictObject({
  role: z.enum(['admin', 'viewer']).default('admin'),
  as: z.string().regex(DESK_NAME, '1 to 128 characters').optional(),
});
export const sessionView = z.object({
  subject: z.string(),
  role: z.enum(['admin', 'viewer']),
  via: z.enum(['link', 'token', 'oidc']),
  expires_at: z.iso.datetime(),
  version: z.string(),
  testnet: z.boolean(),
});
export const openedView = sessionView.extend({ key: z.string() });
export const downloadView = z.object({ url: z.string() });
export const linkView = z.object({ url: z.string(), expires_at: z.iso.datetime() });

type Call<B = unknown> = EndpointCall<unknown, unknown, B>;

export async function openSession(
  { body, peer, headers }: Call<z.output<typeof signInBody>>,
  { desk, version }: Services,
): Promise<EndpointOutcome> {
  if (desk === undefined) return notThere();
  if ((body.code === undefined) === (body.token === undefined))
    return fail(invalidBody([{ pointer: '', detail: 'Send exactly one of code and token.' }]));
  const opened = await desk.signIn(body, peer.address, requestIdOf(headers));
  if ('code' in opened) return fail(opened);
  const view = { ...viewOf(opened.session, desk, version), key: opened.key };
  return jsonResponse(200, view, ['Set-Cookie', desk.setCookie(opened.cookie)]);
}

export function getSession({ principal }: Call, { desk, version }: Services): EndpointOutcome {
  if (desk === undefined || principal.kind !== 'dashboard' || principal.session === undefined) return notThere();
  return jsonResponse(200, viewOf(principal.session.stored, desk, version));
}

export async function endSession(call: Call, { desk, clock, log }: Services): Promise<EndpointOutcome> {
  const { principal } = call;
  if (desk === undefined || principal.kind !== 'dashboard' || principal.session === undefined) return notThere();
  const { id } = principal.session.stored;
  await desk.sessions.end(id, { ...causeOf(call), at: clock.now() });
  log.info('signed out of the desk', { session: id });
  return emptyResponse(204, ['Set-Cookie', desk.setCookie('')]);
}

export async function allowDownload(
  { body, principal }: Call<z.output<typeof downloadBody>>,
  { desk }: Services,
): Promise<EndpointOutcome> {
  if (desk === undefined || principal.kind !== 'dashboard' || principal.session === undefined) return notThere();
  const url = await desk.allowDownload(principal.session.stored.id, body.path);
  return typeof url === 'string' ? jsonResponse(201, { url }) : fail(url);
}

export async function createDeskLink(
  { body, principal, headers, peer }: Call<z.output<typeof linkBody>>,
  { desk, log }: Services,
): Promise<EndpointOutcome> {
  const settings = desk?.settings();
  if (desk === undefined || settings === undefined || principal.kind !== 'dashboard') return notThere();
  const asked = { url: '', headersDistinct: { host: [headers.host ?? ''] }, socket: { localPort: peer.localPort } };
  const origin = settings.publicUrl ?? originOf(asked, settings);
  if (typeof origin !== 'string') return fail(origin);
  const who = { subject: body.as ?? principal.subject ?? 'link', role: body.role };
  const link = await desk.makeLink(who, origin);
  if ('code' in link) return fail(link);
  log.info('a link to the desk was made', { ...who, by: principal.subject });
  return jsonResponse(201, { url: link.url, expires_at: new Date(link.expiresAt).toISOString() });
}

function viewOf(session: StoredSession, desk: DeskDoor, version: string): z.output<typeof sessionView> {
  const { subject, role, via } = session;
  const expires = new Date(desk.sessions.endOf(session)).toISOString();
  return { subject, role, via, expires_at: expires, version, testnet: desk.settings()?.testnet ?? false };
}

function notThere(): EndpointOutcome {
  return fail(problem('not_found', 'There is nothing at this path.'));
}
