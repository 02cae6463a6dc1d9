// Routes that nobody could pay: refused where the proxy that serves them is in the same process, stored where it is not.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIST, REGISTER, SETTINGS, startRegistry, type Kit } from './kit.ts';

let beside: Kit;
let apart: Kit;
beforeAll(async () => {
  beside = await startRegistry({ settings: { unknownReceiver: 'refuse' } });
  apart = await startRegistry();
});
afterAll(async () => {
  await beside.close();
  await apart.close();
});

const good = { method: 'GET', amount: '0.10' };
const unpayable: [string, object, string][] = [
  ['a receiver that is not known', { receiver_config_id: 'nobody' }, '/receiver_config_id'],
  ['a currency that the receiver does not take', { currency: 'EUR' }, '/currency'],
  ['more decimals than the asset has', { amount: '0.0000001' }, '/amount'],
  ['a method that no proxy lets in', { method: 'GETT' }, '/method'],
];

describe.each(unpayable)('%s', (_what, wrong, pointer) => {
  test('refuses: a route that cannot be paid, made, registered or changed to, beside a proxy', async () => {
    const { id } = (await beside.dashboard('POST', LIST, { body: { ...good, route_pattern: `/one${pointer}` } })).json;
    const replies = [
      await beside.dashboard('POST', LIST, { body: { ...good, ...wrong, route_pattern: `/two${pointer}` } }),
      await beside.sdk('POST', REGISTER, { body: { ...good, ...wrong, route_pattern: `/two${pointer}` } }),
      await beside.dashboard('PATCH', `${LIST}/${id}`, { body: wrong }),
    ];
    for (const { status, json } of replies) {
      expect([status, json.code, json.errors.map((error) => error.pointer)]).toEqual([422, 'invalid', [pointer]]);
    }
    expect((await beside.dashboard('GET', `${LIST}/${id}`)).json).toMatchObject(good);
  });
});

describe('a receiver that is not known', () => {
  test('refuses: an unknown receiver, with the names of those that are known', async () => {
    const body = { ...good, route_pattern: '/named', receiver_config_id: 'nobody' };
    const { json } = await beside.dashboard('POST', LIST, { body });
    expect(json.detail).toContain(
      'There is no receiver nobody here, so that nobody could pay. Configured are default.',
    );
  });

  test('behaviour: an unknown receiver is stored by a registry without a proxy, which cannot judge it', async () => {
    const body = { ...good, route_pattern: '/stored', receiver_config_id: 'elsewhere' };
    const made = await apart.dashboard('POST', LIST, { body });
    expect(made.status).toBe(201);
    const patched = await apart.dashboard('PATCH', `${LIST}/${made.json.id}`, {
      body: { receiver_config_id: 'nobody' },
    });
    expect(patched.status).toBe(200);
  });

  test('behaviour: a route whose receiver is gone can be paused, and not made active again', async () => {
    const { id } = (await beside.dashboard('POST', LIST, { body: { ...good, route_pattern: '/gone' } })).json;
    beside.registry.reconfigure({ ...SETTINGS, unknownReceiver: 'refuse', receivers: new Map() });
    const set = (status: string): Promise<{ status: number }> =>
      beside.dashboard('PATCH', `${LIST}/${id}`, { body: { status } });
    expect((await set('paused')).status).toBe(200);
    expect((await set('active')).status).toBe(422);
    beside.registry.reconfigure({ ...SETTINGS, unknownReceiver: 'refuse' });
    expect((await set('active')).status).toBe(200);
  });
});
