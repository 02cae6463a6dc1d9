// Extensions towards facilitators: what is told of a resource and its listing, and what they say of it.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Listing } from '../../../src/domain/discovery/listing.ts';
import { facilitatorAt, json, makeOffer, makeRail, read, SIGNED, startScripted, type Scripted } from './kit.ts';

const LISTING: Listing = {
  bazaar: ['{"info":{"output":1}}', '{"info":{}}'],
  service: { serviceName: 'Example Weather', tags: ['weather'], iconUrl: undefined },
};
const PRESENTED = read(makeRail().rail, makeOffer(), SIGNED);

let facilitator: Scripted;
let said: string | undefined;

beforeEach(async () => {
  said = undefined;
  facilitator = await startScripted((_, res) => {
    if (said !== undefined) res.setHeader('EXTENSION-RESPONSES', said);
    return json(res, { isValid: true });
  });
});
afterEach(() => facilitator.close());

type Body = { readonly paymentPayload: Readonly<Record<string, unknown>> };

async function asked(change: Partial<ReturnType<typeof makeOffer>>): Promise<Body['paymentPayload']> {
  const offer = makeOffer({ facilitators: [facilitatorAt(facilitator.url)] });
  await makeRail().rail.verify({ ...PRESENTED }, { ...offer, ...change });
  return (JSON.parse(facilitator.requests.at(-1)?.body ?? '') as Body).paymentPayload;
}

describe('what is told', () => {
  test('behaviour: a facilitator is told the whole of bazaar, and whose resource it is', async () => {
    const payload = await asked({ listing: LISTING });
    expect(payload['extensions']).toEqual({ bazaar: { info: { output: 1 } } });
    expect(payload['resource']).toEqual({
      url: 'http://api.test/report',
      description: 'a report',
      mimeType: 'application/json',
      serviceName: 'Example Weather',
      tags: ['weather'],
    });
  });

  test('behaviour: a facilitator is told the resource alone if there is no listing', async () => {
    const payload = await asked({ listing: undefined });
    expect(payload).not.toHaveProperty('extensions');
    expect(Object.keys(payload['resource'] as object)).toEqual(['url', 'description', 'mimeType']);
  });

  test('behaviour: a description is one line of at most 256 bytes', async () => {
    for (const [description, expected] of [
      ['x'.repeat(256), 'x'.repeat(256)],
      ['x'.repeat(257), 'x'.repeat(256)],
      [`${'x'.repeat(255)}é`, 'x'.repeat(255)],
      ['a\r\nb', 'a b'],
    ] as const)
      expect((await asked({ description }))['resource']).toMatchObject({ description: expected });
  });

  test('behaviour: a facilitator is told nothing of a listing in version 1', async () => {
    const offer = makeOffer({ facilitators: [facilitatorAt(facilitator.url)] });
    await makeRail().rail.verify({ ...PRESENTED, version: 1 }, { ...offer, listing: LISTING });
    const text = facilitator.requests.at(-1)?.body ?? '';
    expect(JSON.parse(text)).toMatchObject({ x402Version: 1 });
    expect(text).not.toMatch(/bazaar|extensions|Example Weather/);
  });

  test('behaviour: a resource that is not known any more is not told', async () => {
    expect(await asked({ resource: undefined })).not.toHaveProperty('resource');
  });
});

describe('what a facilitator says of extensions', () => {
  const answer = JSON.stringify({ bazaar: { status: 'rejected', rejectedReason: 'no' } });

  async function logged(header: string | undefined): Promise<unknown> {
    said = header;
    const { rail, lines } = makeRail();
    await rail.verify({ ...PRESENTED }, makeOffer({ facilitators: [facilitatorAt(facilitator.url)] }));
    const line = lines
      .map((text) => JSON.parse(text) as Record<string, unknown>)
      .find(({ msg }) => String(msg).includes('extensions'));
    return line?.['extensions'];
  }

  test.each([
    ['decoded', Buffer.from(answer).toString('base64'), answer],
    ['as it is where it is no base64', 'bazaar=rejected', 'bazaar=rejected'],
    ['as it is where it is no text', Buffer.from([0xff, 0xfe]).toString('base64'), '//4='],
    ['up to 4 KiB', '-'.repeat(4096), '-'.repeat(4096)],
    ['and no more', '-'.repeat(4097), '-'.repeat(4096)],
    ['not where it says nothing', undefined, undefined],
    ['not where it is empty', '', undefined],
  ])('behaviour: the answer of a facilitator about extensions is logged, %s', async (_, header, expected) => {
    expect(await logged(header)).toEqual(expected);
  });

  test('attack: the answer of a facilitator about extensions ends no line of the log', async () => {
    expect(await logged(Buffer.from('a\n{"level":"error"}\u2028\u001b[31m').toString('base64'))).toBe(
      'a\n{"level":"error"}\u2028\u001b[31m',
    );
  });
});
