// Every case of a token, over real HTTP, under each of the three ways to configure the key. What must come back is exact;
// the tokens that must be taken show that the others are refused for what is wrong with them.
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FEED, SDK_KEY } from '../kit.ts';
import { ALGORITHM_CASES } from './algorithm-cases.ts';
import type { TokenCase, Verdict } from './case.ts';
import { CLAIM_CASES } from './claim-cases.ts';
import { FORM_CASES } from './form-cases.ts';
import { HEADER_CASES } from './header-cases.ts';
import { issue, startSetting, type SettingName, type Stage } from './settings.ts';

const CASES: readonly TokenCase[] = [...ALGORITHM_CASES, ...HEADER_CASES, ...CLAIM_CASES, ...FORM_CASES];
const SETTINGS: readonly SettingName[] = ['secret', 'public_key', 'jwks_url'];
const STATUS = { taken: [200, undefined], refused: [401, 'credentials_invalid'], unread: [401, 'credentials_missing'] };
const CHALLENGE = {
  taken: undefined,
  refused: expect.stringMatching(
    /^Bearer realm="dashboard", error="invalid_token", error_description="[^"\\\r\n]+\."$/,
  ),
  unread: 'Bearer realm="dashboard"',
};

describe.each(SETTINGS)('under %s', (name) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await startSetting(name);
  });
  afterAll(() => stage.close());

  const cases = CASES.filter(({ only }) => only === undefined || only.includes(name));
  const verdictOf = ({ verdict }: TokenCase, of: Stage): Verdict =>
    typeof verdict === 'string' ? verdict : verdict(of);

  test.each(cases)('attack: a token counts or is refused as it should: $name', async (given) => {
    const token = given.token(stage);
    const reply = await stage.ask({ auth: token });
    const verdict = verdictOf(given, stage);
    const [status, code] = STATUS[verdict];
    expect([reply.status, reply.json.code, reply.headers['www-authenticate']]).toEqual([
      status,
      code,
      CHALLENGE[verdict],
    ]);
    if (verdict === 'taken') return;
    expect(reply.headers['content-type']).toBe('application/problem+json');
    const answer = `${reply.body.toString()}${JSON.stringify(reply.headers)}`;
    for (const part of token.split('.').filter(({ length }) => length > 20)) expect(answer).not.toContain(part);
  });

  const good = (): string => issue(stage);
  test.each<[string, () => Record<string, string | string[]>, Verdict | 400]>([
    ['lower case', () => ({ Authorization: `bearer ${good()}` }), 'taken'],
    ['upper case', () => ({ Authorization: `BEARER ${good()}` }), 'taken'],
    ['two spaces', () => ({ Authorization: `Bearer  ${good()}` }), 'taken'],
    ['white space at the end', () => ({ Authorization: `Bearer ${good()} \t ` }), 'taken'],
    ['no scheme', () => ({ Authorization: good() }), 'unread'],
    ['the scheme alone', () => ({ Authorization: 'Bearer' }), 'unread'],
    ['no space', () => ({ Authorization: `Bearer${good()}` }), 'unread'],
    ['a tab for the space', () => ({ Authorization: `Bearer\t${good()}` }), 'unread'],
    ['a word behind it', () => ({ Authorization: `Bearer ${good()} junk` }), 'unread'],
    ['the scheme twice', () => ({ Authorization: `Bearer Bearer ${good()}` }), 'unread'],
    ['a list of two', () => ({ Authorization: `Bearer ${good()}, Bearer ${good()}` }), 'unread'],
    ['a list without a space', () => ({ Authorization: `Bearer ${good()},${good()}` }), 'refused'],
    ['a parameter', () => ({ Authorization: `Bearer token="${good()}"` }), 'refused'],
    ['Basic', () => ({ Authorization: `Basic ${Buffer.from(`ann:${good()}`).toString('base64')}` }), 'unread'],
    ['Basic with the token as it is', () => ({ Authorization: `Basic ${good()}` }), 'unread'],
    ['DPoP', () => ({ Authorization: `DPoP ${good()}` }), 'unread'],
    ['Proxy-Authorization', () => ({ 'Proxy-Authorization': `Bearer ${good()}` }), 'unread'],
    ['a cookie', () => ({ Cookie: `token=${good()}; Authorization=Bearer ${good()}` }), 'unread'],
    ['X-Authorization and the like', () => ({ 'X-Authorization': `Bearer ${good()}`, Token: good() }), 'unread'],
    ['the header twice, both right', () => ({ Authorization: [`Bearer ${good()}`, `Bearer ${good()}`] }), 400],
    ['the header twice, the first right', () => ({ Authorization: [`Bearer ${good()}`, 'Bearer x'] }), 400],
    ['an API key', () => ({ Authorization: `Bearer ${SDK_KEY}` }), 'refused'],
    ['an API key with two dots', () => ({ Authorization: `Bearer ${SDK_KEY}.a.b` }), 'refused'],
  ])('attack: a credential is refused if its header is %s', async (_what, headers, verdict) => {
    const reply = await stage.ask({ headers: headers() });
    const [status, code] = verdict === 400 ? [400, 'malformed'] : STATUS[verdict];
    expect([reply.status, reply.json.code]).toEqual([status, code]);
    if (verdict !== 400) expect(reply.headers['www-authenticate']).toEqual(CHALLENGE[verdict]);
  });

  test('attack: a token in the query or in the body is no credential', async () => {
    for (const query of ['access_token', 'token', 'authorization', 'jwt'])
      expect((await stage.ask({}, 'GET', `/v1/billing/summary?${query}=${good()}`)).json.code).toBe(
        'credentials_missing',
      );
    const reply = await stage.ask({ body: { access_token: good() } }, 'POST');
    expect([reply.status, reply.json.code]).toEqual([401, 'credentials_missing']);
  });

  test('attack: a good dashboard token is no API key', async () => {
    const reply = await stage.ask({ auth: good() }, 'GET', FEED);
    expect([reply.status, reply.json.code, reply.headers['www-authenticate']]).toEqual([
      401,
      'credentials_invalid',
      expect.stringMatching(/^Bearer realm="sdk", error="invalid_token"/),
    ]);
  });

  test('attack: nothing that any token above said made a connection, and no object was changed', async () => {
    expect(stage.trapped()).toBe(0);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
    // The trap works: it would have told.
    await new Promise<void>((resolve, reject) => {
      const probe = connect(Number(new URL(stage.trap).port), '127.0.0.1', () => {
        probe.destroy();
        resolve();
      }).on('error', reject);
    });
    await expect.poll(() => stage.trapped()).toBe(1);
  });
});

test('behaviour: the table is as large as it says, and no case stands in it twice', () => {
  const names = CASES.map(({ name }) => name);
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  expect(CASES.length).toBeGreaterThan(200);
});
