// GET /v1/audit over real HTTP and a real store: who did what by which way, what a viewer may read, and that guessing at sign-in
// pushes nothing out of the log.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRandom, type Schedule } from '../../src/host/clock.ts';
import { createRefusedSignIns, MOST_ADDRESSES } from '../../src/registry/audit/refused-sign-ins.ts';
import { makeDeskLink } from '../../src/registry/desk/desk-links.ts';
import type { AuditEntry } from '../../src/domain/audit.ts';
import { createLog } from '../../src/host/log.ts';
import type { DeskSettings } from '../../src/registry/desk/desk-settings.ts';
import { SignJWT } from 'jose';
import { LIST, REGISTER, SECRET, startRegistry, type Ask, type Kit } from './kit.ts';

type Row = {
  id: string;
  at: string;
  actor: string;
  via: string;
  kind: string;
  subject: string;
  subject_name: string | null;
  from: Record<string, unknown>;
  to: Record<string, unknown>;
  request_id: string | null;
};
type Page = { data: Row[]; next_cursor: string | null };

const DESK: DeskSettings = {
  ...{ publicUrl: undefined, signIn: ['link', 'token'], oidc: undefined, testnet: true },
  session: { idleMs: 8 * 3_600_000, maxMs: 24 * 3_600_000 },
};

let kit: Kit;
beforeEach(async () => {
  kit = await startRegistry({ settings: { desk: DESK } });
});
afterEach(() => kit.close());

const audit = async (query = '', given: Ask = {}): Promise<Page> => {
  const reply = await kit.dashboard('GET', `/v1/audit${query}`, given);
  expect([reply.status, reply.json.code]).toEqual([200, undefined]);
  return JSON.parse(reply.body.toString()) as Page;
};
const told = ({ data }: Page): unknown[] =>
  data.map(({ kind, actor, via, request_id: request }) => [kind, actor, via, request]);

/** A session of the desk by a link. */
async function signedIn(role: 'admin' | 'viewer', subject: string): Promise<Ask> {
  const own = `127.0.0.1:${kit.port}`;
  const deps = { store: kit.store.desk, random: createRandom(), now: kit.clock.now };
  const link = await makeDeskLink(deps, `http://${own}`, { subject, role });
  const code = link === 'full' ? '' : new URL(link.url).hash.slice('#code='.length);
  const headers = { Host: own, Origin: `http://${own}`, 'X-Request-Id': 'sign-in-1' };
  const reply = await kit.ask('POST', '/desk/session', { body: { code }, headers });
  const { key } = JSON.parse(reply.body.toString()) as { key: string };
  const cookie = String(reply.headers['set-cookie']).split(';', 1)[0] ?? '';
  return { headers: { Host: own, 'Sec-Fetch-Site': 'same-origin', Cookie: cookie, 'Tollgate-Desk': key } };
}

describe('who did what', () => {
  test('behaviour: routes, keys and sessions are told with their actor, way and request, newest first', async () => {
    const body = { route_pattern: '/a', method: 'GET', amount: '1' };
    const made = await kit.dashboard('POST', LIST, { body, headers: { 'X-Request-Id': 'req-1' } });
    const { id } = made.json;
    const { stored } = await kit.createKey('app', ['sdk']);
    await kit.sdk('POST', REGISTER, { body: { ...body, route_pattern: '/b' } });
    const ann = await signedIn('admin', 'ann');
    await kit.ask('PATCH', `${LIST}/${id}`, { ...ann, body: { status: 'paused', amount: '2' } });
    const { headers } = ann;
    await kit.ask('DELETE', `/v1/api-keys/${stored.id}`, ann);
    await kit.ask('DELETE', '/desk/session', { headers: { ...headers, Origin: `http://127.0.0.1:${kit.port}` } });
    await kit.dashboard('DELETE', `${LIST}/${id}`);
    const page = await audit();
    expect(told(page)).toEqual([
      ['route.deleted', 'tollgate-cli', 'jwt', null],
      ['session.ended', 'ann', 'session', null],
      ['api_key.revoked', 'ann', 'session', null],
      ['route.updated', 'ann', 'session', null],
      ['session.created', 'ann', 'link', 'sign-in-1'],
      ['route.created', 'app', 'api_key', null],
      ['api_key.created', '', 'tollgate', null],
      ['route.created', 'tollgate-cli', 'jwt', 'req-1'],
    ]);
    const updated = page.data.find(({ kind }) => kind === 'route.updated');
    expect(updated).toMatchObject({
      ...{ subject: id, subject_name: null, from: { amount: '1', status: 'active' } },
      to: { amount: '2', status: 'paused' },
    });
    expect(Object.keys(updated?.to ?? {}).toSorted()).toEqual(['amount', 'status']);
    expect(page.data.at(-1)).toMatchObject({ subject: id, subject_name: 'GET /a', from: {} });
    expect(page.data.filter(({ to }) => to['route_pattern'] === '/b')).toMatchObject([{ subject_name: 'GET /b' }]);
    expect(page.data.find(({ kind }) => kind === 'session.created')?.to).toEqual({
      role: 'admin',
      address: '127.0.0.1',
    });
  });

  test('behaviour: who tests, enables and sends again to a webhook is told', async () => {
    await kit.ledger.store.webhooks.declare([{ id: 'books', types: [] }], undefined);
    const ann = await signedIn('admin', 'ann');
    const origin = { headers: { ...ann.headers, Origin: `http://127.0.0.1:${kit.port}` } };
    const tested = await kit.dashboard('POST', '/v1/webhooks/books/test', { headers: { 'X-Request-Id': 'req-1' } });
    const { event_id: event } = JSON.parse(tested.body.toString()) as { event_id: string };
    await kit.ask('POST', `/v1/webhooks/books/deliveries/${event}/retry`, origin);
    await kit.ask('POST', '/v1/webhooks/books/enable', origin);
    await kit.dashboard('POST', '/v1/webhooks/nobody/enable');
    const page = await audit('?subject=books');
    expect(told(page)).toEqual([
      ['webhook.enabled', 'ann', 'session', null],
      ['webhook.retried', 'ann', 'session', null],
      ['webhook.tested', 'tollgate-cli', 'jwt', 'req-1'],
    ]);
    expect(page.data.map(({ from, to }) => [from, to])).toEqual([
      [{}, {}],
      [{}, { event_id: event }],
      [{}, { event_id: event }],
    ]);
  });

  test('behaviour: filters are exact and apply together, pages follow one another, and a viewer may read', async () => {
    for (const name of ['/a', '/b', '/c'])
      await kit.dashboard('POST', LIST, { body: { route_pattern: name, method: 'GET', amount: '1' } });
    await kit.createKey('k', ['sdk']);
    const viewer = await signedIn('viewer', 'vic');
    const first = await audit('?limit=2');
    const second = await audit(`?limit=2&cursor=${first.next_cursor}`);
    const third = await audit(`?limit=2&cursor=${second.next_cursor}`);
    expect([first, second, third].flatMap(({ data }) => data)).toEqual((await audit()).data);
    expect(third.next_cursor).toBeNull();
    const routes = await kit.ask('GET', '/v1/audit?kind=route.created&actor=tollgate-cli', viewer);
    expect([routes.status, (JSON.parse(routes.body.toString()) as Page).data.length]).toEqual([200, 3]);
    expect((await audit('?actor=vic')).data.map(({ kind }) => kind)).toEqual(['session.created']);
    const [newest] = first.data;
    expect((await audit(`?from=${newest?.at}`)).data.length).toBeGreaterThan(0);
    expect((await audit(`?to=2020-01-01`)).data).toEqual([]);
    expect((await audit('?subject=%27%20OR%201%3D1')).data).toEqual([]);
    for (const wrong of ['kind=route', 'kind=', 'cursor=x', 'cursor=cjE', 'limit=0', 'from=yesterday', 'who=ann'])
      expect([wrong, (await kit.dashboard('GET', `/v1/audit?${wrong}`)).status]).toEqual([wrong, 400]);
  });

  test('attack: what somebody else wrote is told as it is, in JSON, and a request id that is none is not kept', async () => {
    const evil = '<img src=x onerror=alert(1)>\u202E';
    const auth = await new SignJWT({})
      .setProtectedHeader({ alg: 'HS256' })
      .setIssuer('tollgate')
      .setAudience('dashboard')
      .setSubject(evil)
      .setExpirationTime(Math.floor(kit.clock.now() / 1000) + 60)
      .sign(Buffer.from(SECRET));
    const body = { route_pattern: '/a', method: 'GET', amount: '1', name: evil };
    await kit.ask('POST', LIST, { auth, body, headers: { 'X-Request-Id': '<b>' } });
    const reply = await kit.dashboard('GET', '/v1/audit');
    expect(reply.headers['content-type']).toBe('application/json');
    expect(reply.headers['x-content-type-options']).toBe('nosniff');
    expect((JSON.parse(reply.body.toString()) as Page).data[0]).toMatchObject({
      ...{ actor: evil, request_id: null },
      to: { name: evil },
    });
  });

  test('refuses: a change that is refused leaves no entry', async () => {
    const body = { route_pattern: '/a', method: 'GET', amount: '1' };
    const { id } = (await kit.dashboard('POST', LIST, { body })).json;
    const viewer = await signedIn('viewer', 'vic');
    await kit.ask('PATCH', `${LIST}/${id}`, { ...viewer, body: { amount: '2' } });
    await kit.dashboard('PATCH', `${LIST}/${id}`, { body: { amount: '2' }, headers: { 'If-Match': '"other"' } });
    await kit.dashboard('PATCH', `${LIST}/${id}`, { body: { amount: '1' } });
    await kit.dashboard('POST', LIST, { body });
    expect((await audit()).data.map(({ kind }) => kind)).toEqual(['session.created', 'route.created']);
  });
});

describe('refused sign-ins', () => {
  test('attack: codes are guessed: one address leaves one entry, and those that were refused later are counted with it', async () => {
    const own = `127.0.0.1:${kit.port}`;
    const guess = (): Promise<unknown> =>
      kit.ask('POST', '/desk/session', {
        body: { code: 'A'.repeat(43) },
        headers: { Host: own, Origin: `http://${own}` },
      });
    for (let i = 0; i < 14; i++) await guess();
    expect((await audit()).data).toMatchObject([
      { kind: 'session.refused', actor: '', subject: '127.0.0.1', to: { way: 'link', attempts: 1 } },
    ]);
    await kit.registry.close();
    expect((await audit()).data).toMatchObject([
      { kind: 'session.refused', subject: '127.0.0.1', to: { way: 'link', attempts: 13 } },
      { kind: 'session.refused', subject: '127.0.0.1', to: { way: 'link', attempts: 1 } },
    ]);
  });

  test('attack: ten thousand addresses leave a bounded number of entries an hour, and none is forgotten in the count', async () => {
    const entries: AuditEntry[] = [];
    let atEnd = (): void => undefined;
    const schedule: Schedule = (_ms, run) => {
      atEnd = run;
      return () => undefined;
    };
    const refusals = createRefusedSignIns({
      audit: { add: async (entry) => void entries.push(entry) },
      ...{ now: () => 1, schedule, log: createLog('error', () => undefined, Date.now) },
    });
    for (let hour = 0; hour < 3; hour++) {
      for (let i = 0; i < 10_000; i++) refusals.refused('token', `10.0.${i >> 8}.${i & 255}`);
      atEnd();
    }
    await refusals.close();
    expect(entries.length).toBe(3 * (MOST_ADDRESSES + 1));
    const counted = entries.reduce((sum, { to }) => sum + Number(to['attempts']), 0);
    expect(counted).toBe(30_000);
  });
});
