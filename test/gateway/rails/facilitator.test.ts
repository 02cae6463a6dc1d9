// What a facilitator may say and what is believed of it; who is asked after whom; how long anybody waits.
import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { PresentedPayment, Settlement, Verification } from '../../../src/gateway/rails/rail.ts';
import {
  FRESH,
  GO,
  SIGNED,
  deadUrl,
  facilitatorAt,
  fakeTime,
  json,
  changed,
  makeOffer,
  makeRail,
  read,
  startScripted,
  type Scripted,
} from './kit.ts';

const HASH = `0x${'9a'.repeat(32)}`;
const PAYER = SIGNED.authorization.from;
const SETTLED = { success: true, transaction: HASH, network: 'eip155:84532', payer: PAYER };
const REFUSED = {
  success: false,
  errorReason: 'invalid_exact_evm_insufficient_balance',
  transaction: '',
  network: 'eip155:84532',
  payer: PAYER,
};

/** Any of them may come with a body in the form of a verdict or a settlement. */
const STATUSES = [307, 400, 401, 402, 403, 404, 405, 413, 415, 422, 429, 500, 502, 503];

let first: Scripted;
let second: Scripted;

beforeEach(async () => {
  [first, second] = await Promise.all([
    startScripted((_, res) => json(res, { isValid: true, payer: PAYER })),
    startScripted((req, res) => json(res, req.url === '/settle' ? SETTLED : { isValid: true, payer: PAYER })),
  ]);
});
afterEach(async () => {
  await Promise.all([first.close(), second.close()]);
});

const read1 = (): PresentedPayment => read(makeRail().rail, makeOffer(), SIGNED);
const PRESENTED = read1();

function offerOf(...urls: string[]) {
  return makeOffer({ facilitators: urls.map((url) => facilitatorAt(url)) });
}
const verify = (offer = offerOf(first.url)): Promise<Verification> => makeRail().rail.verify(PRESENTED, offer);
const settle = (offer = offerOf(first.url), history = FRESH): Promise<Settlement> =>
  makeRail().rail.settle(PRESENTED, offer, history, GO);

/** Makes `first` answer every call with this. */
function say(body: unknown, status = 200): void {
  first.answer = (_, res) => json(res, body, status);
}

describe('what is sent', () => {
  test('behaviour: a facilitator is sent our own terms, the signed part alone, and the configured headers', async () => {
    const offer = offerOf(`${first.url}/x402/`);
    const { way } = offer;
    const facilitator = { ...facilitatorAt(`${first.url}/x402/`), headers: { Authorization: 'Bearer s3cret' } };
    const { rail, lines } = makeRail();
    expect(await rail.verify(PRESENTED, changed(offer, { facilitators: [facilitator] }))).toEqual({
      kind: 'valid',
      payer: PAYER,
    });
    const [request] = first.requests;
    expect(request).toMatchObject({ method: 'POST', url: '/x402/verify' });
    expect(request?.headers).toMatchObject({ authorization: 'Bearer s3cret', 'content-type': 'application/json' });
    const requirements = {
      scheme: 'exact',
      network: 'eip155:84532',
      amount: '100000',
      asset: way.asset,
      payTo: way.payTo,
      maxTimeoutSeconds: 300,
      extra: { name: 'USDC', version: '2' },
    };
    expect(JSON.parse(request?.body ?? '')).toEqual({
      x402Version: 2,
      paymentPayload: {
        x402Version: 2,
        resource: { url: 'http://api.test/report', description: 'a report', mimeType: 'application/json' },
        accepted: requirements,
        payload: { signature: SIGNED.signature, authorization: { ...SIGNED.authorization, to: way.payTo } },
      },
      paymentRequirements: requirements,
    });
    expect(lines.join()).not.toContain('s3cret');
  });

  test('attack: a payment of another price is asked about at that price, whatever was asked before', async () => {
    const offer = offerOf(first.url);
    const { rail } = makeRail();
    const { way } = offer;
    const asked = [offer, { ...offer, amount: 7n }, changed(offer, { payTo: PAYER }), offer];
    for (const each of asked) await rail.verify({ ...PRESENTED }, each);
    const requirements = first.requests.map(({ body }) => {
      const { paymentPayload, paymentRequirements } = JSON.parse(body);
      expect(paymentPayload.accepted).toEqual(paymentRequirements);
      return [paymentRequirements.amount, paymentRequirements.payTo];
    });
    expect(requirements).toEqual([
      ['100000', way.payTo],
      ['7', way.payTo],
      ['100000', PAYER],
      ['100000', way.payTo],
    ]);
  });

  test('behaviour: a v1 payment goes to the facilitator as v1', async () => {
    const { rail } = makeRail();
    const value = Buffer.from(
      JSON.stringify({ x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: SIGNED }),
    );
    const offer = offerOf(first.url);
    const presented = rail.read({ version: 1, value: value.toString('base64') }, [offer.way]);
    if (!('key' in presented)) throw new Error(JSON.stringify(presented));
    say({ ...SETTLED, network: 'base-sepolia' });
    expect(await rail.settle(presented, offer, FRESH, GO)).toMatchObject({ kind: 'settled' });
    expect(JSON.parse(first.requests[0]?.body ?? '')).toMatchObject({
      x402Version: 1,
      paymentPayload: { x402Version: 1, scheme: 'exact', network: 'base-sepolia' },
      paymentRequirements: {
        network: 'base-sepolia',
        maxAmountRequired: '100000',
        resource: 'http://api.test/report',
        description: 'a report',
        mimeType: 'application/json',
      },
    });
  });
});

describe('verify: answers', () => {
  const valid = { isValid: true, payer: PAYER };

  test.each<[string, unknown]>([
    ['with the payer', valid],
    ['without one', { isValid: true }],
    ['with nulls', { isValid: true, payer: PAYER, invalidReason: null, invalidMessage: null }],
    ['with the payer in another case', { isValid: true, payer: PAYER.toUpperCase().replace('0X', '0x') }],
    ['with members unknown here', { ...valid, extensions: {}, extra: { a: 1 } }],
  ])('behaviour: an answer to verify is valid %s', async (_, body) => {
    say(body);
    expect(await verify()).toEqual({ kind: 'valid', payer: PAYER });
  });

  test.each<[string, unknown, number, string]>([
    [
      'with a reason',
      { isValid: false, invalidReason: 'invalid_exact_evm_signature' },
      200,
      'invalid_exact_evm_signature',
    ],
    ['under 400', { isValid: false, invalidReason: 'insufficient_funds' }, 400, 'insufficient_funds'],
    ['without a reason', { isValid: false }, 200, 'payment_invalid'],
    ['with a reason in upper case', { isValid: false, invalidReason: 'Insufficient_Funds' }, 200, 'insufficient_funds'],
    [
      'with a reason that leaks',
      { isValid: false, invalidReason: 'at http://node/key: revert' },
      200,
      'payment_invalid',
    ],
    [
      'with a message that leaks',
      { isValid: false, invalidReason: 'payment_expired', invalidMessage: 'rpc' },
      200,
      'payment_expired',
    ],
  ])('behaviour: an answer to verify is refused %s', async (_, body, status, reason) => {
    say(body, status);
    expect(await verify()).toEqual({ kind: 'refused', reason });
  });

  const bomb = `{"isValid":true,"x":${'['.repeat(5000)}${']'.repeat(5000)}}`;
  test.each<[string, unknown, number?]>([
    ['isValid as a string', { isValid: 'true', payer: PAYER }],
    ['isValid as 1', { isValid: 1, payer: PAYER }],
    ['isValid as an object', { isValid: {}, payer: PAYER }],
    ['isValid as null', { isValid: null, payer: PAYER }],
    ['no isValid', { payer: PAYER }],
    ['another spelling', { is_valid: true, payer: PAYER }],
    ['a settlement', SETTLED],
    ['true', 'true'],
    ['an array', [valid]],
    ['null', 'null'],
    ['nothing', ''],
    ['HTML', '<html>isValid: true</html>'],
    ['cut off', '{"isValid":true'],
    ['two values', '{"isValid":true}{"isValid":true}'],
    ['a payer of another', { isValid: true, payer: '0x2222222222222222222222222222222222222222' }],
    ['a payer that is an object', { isValid: true, payer: { toString: 1 } }],
    ['valid, and a reason why not', { ...valid, invalidReason: 'expired' }],
    ['__proto__', '{"__proto__":{"isValid":true},"isValid":true}'],
    ['a bomb', bomb],
    ['64 KiB and more', JSON.stringify({ ...valid, x: 'x'.repeat(64 * 1024) })],
    ['a string too long', JSON.stringify({ ...valid, x: 'x'.repeat(20_000) })],
    ['not its scheme', { isValid: false, invalidReason: 'unsupported_scheme' }],
    ['not its network', { isValid: false, invalidReason: 'invalid_network' }],
    ['a failure of its own', { isValid: false, invalidReason: 'unexpected_verify_error' }],
    ['a token it knows otherwise', { isValid: false, invalidReason: 'invalid_exact_evm_token_name_mismatch' }],
  ])('attack: an answer to verify of %s is none, and the next one is asked', async (_, body, status = 200) => {
    say(body, status);
    expect(await verify(offerOf(first.url))).toMatchObject({ kind: 'unavailable' });
    expect(await verify(offerOf(first.url, second.url))).toEqual({ kind: 'valid', payer: PAYER });
  });

  test.each(STATUSES)('behaviour: a verdict is read by its words under status %d', async (status) => {
    say({ isValid: false, invalidReason: 'signature' }, status);
    expect(await verify(offerOf(first.url, second.url))).toEqual({ kind: 'refused', reason: 'signature' });
    say(valid, status);
    expect(await verify()).toEqual({ kind: 'valid', payer: PAYER });
    say({ ...valid, invalidReason: 'expired' }, status);
    expect(await verify()).toMatchObject({ kind: 'unavailable' });
  });

  test.each([429, 503])(
    'behaviour: verdicts under status %d are answers, after which nobody is left alone',
    async (status) => {
      const { rail } = makeRail();
      const offer = offerOf(first.url);
      say(valid, status);
      for (let i = 0; i < 6; i++) expect((await rail.verify(PRESENTED, offer)).kind).toBe('valid');
      say(SETTLED, status);
      for (let i = 0; i < 6; i++) expect((await rail.settle(PRESENTED, offer, FRESH, GO)).kind).toBe('settled');
      expect(rail.isCallable(offer.way)).toBe(true);
    },
  );

  test.each([301, 302, 303, 307, 308])(
    'attack: a redirect (%d) would carry the signed payment and our key elsewhere: it is not followed',
    async (status) => {
      first.answer = (_, res) => res.writeHead(status, { location: `${second.url}/verify` }).end();
      const facilitator = { ...facilitatorAt(first.url), headers: { Authorization: 'Bearer s3cret' } };
      const offer = makeOffer({ facilitators: [facilitator] });
      expect(await verify(offer)).toMatchObject({
        kind: 'unavailable',
        detail: expect.stringContaining('redirect'),
      });
      expect(await settle(offer)).toMatchObject({ kind: 'unknown' });
      expect(first.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer s3cret', 'Bearer s3cret']);
      expect(second.requests).toEqual([]);
    },
  );

  test('attack: an endless answer of a facilitator is cut off at 64 KiB', async () => {
    let sent = 0;
    first.answer = (_, res) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      const chunk = Buffer.alloc(16 * 1024, 0x20);
      const more = (): void => {
        while (!res.destroyed && res.write(chunk)) sent += chunk.length;
        if (!res.destroyed) res.once('drain', more);
      };
      more();
    };
    expect(await verify()).toMatchObject({ kind: 'unavailable', detail: expect.stringContaining('65536') });
    expect(sent).toBeLessThan(16 * 1024 * 1024);
  });

  test('attack: bytes that are not HTTP are no answer of a facilitator', async () => {
    const raw = createServer((socket) => socket.on('error', () => undefined).end('HELLO\r\n\r\n'));
    await new Promise<void>((resolve) => raw.listen(0, '127.0.0.1', resolve));
    const address = raw.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    expect(await verify(offerOf(`http://127.0.0.1:${port}`))).toMatchObject({ kind: 'unavailable' });
    raw.close();
  });

  test('attack: nothing that a facilitator says reaches the log, but a checked reason', async () => {
    const { rail, lines } = makeRail();
    say({ isValid: false, invalidReason: 'secret sk_live_1 \u001b[31m', invalidMessage: 'sk_live_2' });
    await rail.verify(PRESENTED, offerOf(`${first.url}/key-sk_live_3`));
    say({ isValid: 'sk_live_4' });
    await rail.verify(PRESENTED, offerOf(`${first.url}/key-sk_live_3`));
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.join()).not.toContain('sk_live');
  });
});

describe('settle: three ends', () => {
  test('behaviour: a settlement that the facilitator made is settled', async () => {
    say(SETTLED);
    expect(await settle()).toEqual({ kind: 'settled', transaction: HASH, via: expect.any(String) });
  });

  test.each<[string, object]>([
    ['with the amount', { amount: '100000' }],
    ['with nulls', { amount: null, errorReason: null }],
    ['without the payer', { payer: undefined }],
    ['without the network', { network: undefined }],
    ['with nothing but the transaction', { payer: '', network: null }],
    ['on the network by its v1 name', { network: 'base-sepolia' }],
    ['with a transaction in upper case', { transaction: `0x${'9A'.repeat(32)}` }],
  ])('behaviour: an answer to settle is read as settled %s', async (_, members) => {
    say({ ...SETTLED, ...members });
    expect(await settle()).toMatchObject({ kind: 'settled', transaction: HASH });
  });

  test.each([
    'invalid_exact_evm_insufficient_balance',
    'insufficient_funds',
    'invalid_exact_evm_signature',
    'invalid_exact_evm_payload_signature',
    'invalid_exact_evm_payload_authorization_valid_before',
    'invalid_exact_evm_recipient_mismatch',
    'invalid_payload',
  ])('behaviour: an answer to settle is read as refused: %s', async (errorReason) => {
    say({ ...REFUSED, errorReason });
    expect(await settle(offerOf(first.url, second.url))).toEqual({
      kind: 'refused',
      reason: errorReason,
      via: expect.any(String),
    });
    expect(second.requests).toEqual([]);
  });

  test.each([200, ...STATUSES])('behaviour: a settlement is read by its words under status %d', async (status) => {
    say(SETTLED, status);
    const settled = { kind: 'settled', transaction: HASH, via: expect.any(String) };
    expect(await settle(offerOf(first.url, second.url))).toEqual(settled);
    say(REFUSED, status);
    expect(await settle(offerOf(first.url, second.url))).toMatchObject({ kind: 'refused' });
    say({ ...REFUSED, errorReason: 'nonce_already_used' }, status);
    expect(await settle(offerOf(first.url, second.url))).toMatchObject({ kind: 'unknown' });
    say({ ...REFUSED, errorReason: 'payer_is_blocked' }, status);
    expect(await settle(offerOf(first.url, second.url))).toMatchObject({ kind: 'unknown' });
    say({ ...REFUSED, errorReason: 'unsupported_scheme', transaction: HASH }, status);
    expect(await settle(offerOf(first.url, second.url))).toMatchObject({ kind: 'unknown' });
    expect(second.requests).toEqual([]);
  });

  test.each([
    'settlement_pending',
    'invalid_exact_evm_nonce_already_used',
    'nonce_already_used',
    'invalid_exact_evm_transaction_failed',
    'transaction_failed',
    'duplicate_settlement',
    'already_settled',
    'invalid_exact_evm_transaction_simulation_failed',
    'invalid_transaction_state',
    'confirmation_timeout',
    'settle_exact_evm_transaction_confirmation_timed_out',
    'invalid_nonce',
    'unexpected_settle_error',
    'unknown_failure',
    'internal_server_error',
    'rpc_error',
    'payer_is_blocked',
    'policy_denied',
  ])('behaviour: a settlement that fails with %s is unknown', async (errorReason) => {
    say({ ...REFUSED, errorReason });
    expect(await settle(offerOf(first.url, second.url))).toMatchObject({ kind: 'unknown', reason: errorReason });
    expect(second.requests).toEqual([]);
  });

  test.each([
    'unsupported_scheme',
    'invalid_network',
    'rate_limit_exceeded',
    'invalid_exact_evm_token_name_mismatch',
    'eip6492_factory_not_allowed',
    'No matching payment handler found',
  ])(
    'behaviour: a settlement that fails with %s is not carried out, and the next one is asked',
    async (errorReason) => {
      say({ ...REFUSED, errorReason });
      expect(await settle(offerOf(first.url, second.url))).toMatchObject({ kind: 'settled' });
      expect(await settle()).toMatchObject({ kind: 'not_carried_out', reason: 'facilitator_unavailable' });
    },
  );

  test('behaviour: a refusal of a settlement that names a transaction is unknown', async () => {
    say({ ...REFUSED, transaction: HASH });
    expect(await settle()).toMatchObject({ kind: 'unknown' });
    say({ ...REFUSED, transaction: 'pending' });
    expect(await settle()).toMatchObject({ kind: 'unknown' });
  });

  test('behaviour: a refusal after an unknown end is unknown, whatever it says; a settlement is a settlement', async () => {
    say(REFUSED);
    expect(await settle(undefined, { ...FRESH, afterUnknown: true })).toMatchObject({ kind: 'unknown' });
    say(SETTLED);
    expect(await settle(undefined, { ...FRESH, afterUnknown: true })).toMatchObject({ kind: 'settled' });
  });

  test.each<[number, string]>(
    [401, 402, 403, 404, 405, 413, 415, 429].flatMap((status): [number, string][] =>
      ['', '<html>', '{"error":"no"}', '{"isValid":false,"invalidReason":"x"}', 'null'].map((body) => [status, body]),
    ),
  )(
    'behaviour: a settlement answered with status %d and %j was not carried out, and the next one is asked',
    async (status, body) => {
      say(body, status);
      expect(await settle(offerOf(first.url, second.url))).toMatchObject({ kind: 'settled' });
      expect(await settle()).toMatchObject({ kind: 'not_carried_out', reason: 'facilitator_unavailable' });
    },
  );

  test.each<[string, unknown, number?]>([
    ['success as a string', { ...SETTLED, success: 'true' }],
    ['success as 1', { ...SETTLED, success: 1 }],
    ['no success', { ...SETTLED, success: undefined }],
    ['no transaction', { ...SETTLED, transaction: undefined }],
    ['an empty transaction', { ...SETTLED, transaction: '' }],
    ['a transaction that is none', { ...SETTLED, transaction: '0x1234' }],
    ['a transaction that is a number', { ...SETTLED, transaction: 7 }],
    ['another network', { ...SETTLED, network: 'eip155:8453' }],
    ['a network that does not exist', { ...SETTLED, network: 'constructor' }],
    ['another payer', { ...SETTLED, payer: '0x2222222222222222222222222222222222222222' }],
    ['less than the amount', { ...SETTLED, amount: '99999' }],
    ['another asset', { ...SETTLED, asset: '0x2222222222222222222222222222222222222222' }],
    ['another recipient', { ...SETTLED, payTo: '0x2222222222222222222222222222222222222222' }],
    ['settled, and a reason why not', { ...SETTLED, errorReason: 'insufficient_funds' }],
    ['refused without a reason', { ...REFUSED, errorReason: undefined }],
    ['a verification', { isValid: true, payer: PAYER }],
    ['an array', [SETTLED]],
    ['null', 'null'],
    ['nothing', ''],
    ['HTML', '<html>'],
    ['cut off', JSON.stringify(SETTLED).slice(0, -1)],
    ['64 KiB and more', JSON.stringify({ ...SETTLED, x: 'x'.repeat(64 * 1024) })],
    ['__proto__', JSON.stringify(SETTLED).replace('{', '{"__proto__":{},')],
    ['half a settlement under 401', { success: 'yes' }, 401],
    ['half a settlement under 404', { success: null, transaction: HASH }, 404],
    ['a transaction alone under 403', { transaction: HASH, error: 'no' }, 403],
    ['settled under 403, without a transaction', { ...SETTLED, transaction: '' }, 403],
    ['settled under 404, on another network', { ...SETTLED, network: 'eip155:8453' }, 404],
    ['more than is read under 404', `{"success":true,"x":${'['.repeat(100)}${']'.repeat(100)}}`, 404],
    ['nothing under 400', '', 400],
    ['nothing under 409', '', 409],
    ['nothing under 500', '', 500],
    ['HTML under 502', '<html>', 502],
    ['HTML under 503', '<html>', 503],
    ['an error under 422', { error: 'no' }, 422],
  ])('attack: a settlement answered with %s is unknown, and nobody else is asked', async (_, body, status = 200) => {
    say(body, status);
    expect(await settle(offerOf(first.url, second.url))).toMatchObject({ kind: 'unknown' });
    expect(second.requests).toEqual([]);
  });

  test('behaviour: a settlement whose connection is lost before any answer is unknown, and nobody else is asked', async () => {
    first.answer = (req) => req.socket.destroy();
    expect(await settle(offerOf(first.url, second.url))).toMatchObject({ kind: 'unknown' });
    expect(second.requests).toEqual([]);
  });

  test('behaviour: a settlement whose connection is lost in the middle of the answer is unknown', async () => {
    first.answer = (req, res) => {
      res.writeHead(200, { 'content-length': '500' });
      res.write('{"success":true', () => req.socket.destroy());
    };
    expect(await settle(offerOf(first.url, second.url))).toMatchObject({ kind: 'unknown' });
    expect(second.requests).toEqual([]);
  });

  test('behaviour: a settlement whose connection was never made lets the next one be asked', async () => {
    expect(await settle(offerOf(await deadUrl(), second.url))).toMatchObject({ kind: 'settled' });
  });

  test('behaviour: a call to a name that does not resolve, or whose TLS cannot be, was never sent', async () => {
    const plain = second.url.replace('http:', 'https:');
    const result = await settle(offerOf('http://does-not-exist.invalid', plain));
    expect(result).toMatchObject({ kind: 'not_carried_out', reason: 'facilitator_unavailable' });
    expect(second.requests).toEqual([]);
  });

  test('behaviour: a settlement is not carried out if nobody can be asked', async () => {
    expect(await settle(offerOf(await deadUrl(), await deadUrl()))).toMatchObject({ kind: 'not_carried_out' });
  });

  test('behaviour: the work that must be durable is done before each call, and told who is called', async () => {
    say('', 401);
    const { rail } = makeRail();
    const offer = offerOf(first.url, second.url);
    const named: string[] = [];
    const seen: number[][] = [];
    const settled = await rail.settle(PRESENTED, offer, FRESH, async (via) => {
      named.push(via);
      seen.push([first.requests.length, second.requests.length]);
      return true;
    });
    expect(seen).toEqual([
      [0, 0],
      [1, 0],
    ]);
    expect(named[0]).toBe(rail.firstVia(PRESENTED, offer));
    expect(settled).toEqual({ kind: 'settled', transaction: HASH, via: named[1] });
    expect(named[1]).not.toBe(named[0]);
  });

  test('behaviour: the facilitator that verified is asked to settle first, then the others in order', async () => {
    const { rail } = makeRail();
    const third = await startScripted((_, res) => json(res, '', 401));
    onTestFinished(() => third.close());
    const offer = offerOf(first.url, third.url, second.url);
    say('', 403);
    await rail.verify(PRESENTED, offer);
    second.answer = (_, res) => json(res, '', 429);
    const named: string[] = [];
    await rail.settle(PRESENTED, offer, FRESH, async (via) => named.push(via) > 0);
    const urls = [second, first, third];
    expect(named).toEqual(urls.map(({ url }) => rail.firstVia(PRESENTED, offerOf(url))));
    expect(urls.map(({ requests }) => requests.filter(({ url }) => url === '/settle').length)).toEqual([1, 1, 1]);
    expect(rail.firstVia(PRESENTED, offer)).toBe(named[0]);
  });

  test('behaviour: the facilitator that judged a payment is asked first, also if it refused it', async () => {
    const { rail } = makeRail();
    const offer = offerOf(first.url, second.url);
    say('', 403);
    second.answer = (_, res) => json(res, { isValid: false, invalidReason: 'nonce_already_used' });
    await rail.verify(PRESENTED, offer);
    expect(rail.firstVia(PRESENTED, offer)).toBe(rail.firstVia(PRESENTED, offerOf(second.url)));
  });

  test('behaviour: a verifier that is configured no more changes nothing in the order', async () => {
    const { rail } = makeRail();
    await rail.verify(PRESENTED, offerOf(second.url));
    const offer = offerOf(first.url);
    expect(rail.firstVia(PRESENTED, offer)).toBe(makeRail().rail.firstVia(PRESENTED, offer));
  });

  test('attack: a payment of another payer with the same nonce does not change who settles first', async () => {
    const { rail } = makeRail();
    const offer = offerOf(first.url, second.url);
    await rail.verify(PRESENTED, offer);
    const from = '0x2222222222222222222222222222222222222222';
    const other = read(rail, offer, { ...SIGNED, authorization: { ...SIGNED.authorization, from } });
    say('', 403);
    second.answer = (_, res) => json(res, { isValid: true });
    expect(await rail.verify(other, offer)).toMatchObject({ kind: 'valid' });
    expect(rail.firstVia(PRESENTED, offer)).toBe(rail.firstVia(PRESENTED, offerOf(first.url)));
    expect(rail.firstVia(other, offer)).toBe(rail.firstVia(other, offerOf(second.url)));
  });

  test('behaviour: an objection before a call stops it, and every other', async () => {
    const { rail } = makeRail();
    const stopped = await rail.settle(PRESENTED, offerOf(first.url, second.url), FRESH, async () => false);
    expect(stopped).toEqual({ kind: 'not_carried_out', reason: 'stopped', retryAfterMs: undefined });
    await expect(
      rail.settle(PRESENTED, offerOf(first.url, second.url), FRESH, () =>
        Promise.reject(new Error('the ledger is away')),
      ),
    ).rejects.toThrow('the ledger is away');
    expect([...first.requests, ...second.requests]).toEqual([]);
  });

  test('behaviour: a facilitator that is left alone was not asked; the answer says how long', async () => {
    const time = fakeTime();
    const { rail } = makeRail({ schedule: time.schedule, clock: time.clock });
    first.answer = () => time.advance(15_000);
    for (let i = 0; i < 5; i++) await rail.settle(PRESENTED, offerOf(first.url), FRESH, GO);
    time.advance(400);
    let asked = 0;
    const left = await rail.settle(PRESENTED, offerOf(first.url), FRESH, async () => ++asked > 0);
    expect(left).toEqual({ kind: 'not_carried_out', reason: 'facilitator_unavailable', retryAfterMs: 600 });
    expect(asked).toBe(0);
    expect(await rail.settle(PRESENTED, offerOf(first.url, second.url), FRESH, GO)).toMatchObject({ kind: 'settled' });
  });

  test('behaviour: a way is callable until all of its facilitators are left alone, and again once one is back', async () => {
    const time = fakeTime();
    const { rail } = makeRail({ schedule: time.schedule, clock: time.clock });
    const one = offerOf(first.url);
    const two = offerOf(first.url, second.url);
    const seen = (): unknown[] => [rail.isCallable(one.way), rail.isCallable(two.way), rail.revision()];
    expect(seen()).toEqual([true, true, 0]);
    first.answer = () => time.advance(15_000);
    for (let i = 0; i < 4; i++) await rail.settle(PRESENTED, one, FRESH, GO);
    expect(seen()).toEqual([true, true, 0]);
    await rail.settle(PRESENTED, one, FRESH, GO);
    expect(seen()).toEqual([false, true, 1]);
    say(SETTLED);
    time.advance(1000);
    // One call at a time tries; until it is answered nothing has changed.
    expect(seen()).toEqual([false, true, 1]);
    await rail.settle(PRESENTED, one, FRESH, GO);
    expect(seen()).toEqual([true, true, 2]);
    expect(rail.isCallable(makeOffer({ facilitators: [] }).way)).toBe(false);
  });

  test('behaviour: a repeated attempt asks first the facilitator that was asked first, then the others', async () => {
    first.answer = (req) => req.socket.destroy();
    const before = await settle(offerOf(first.url, second.url));
    if (before.kind !== 'unknown') throw new Error(before.kind);
    const history = { afterUnknown: true, via: before.via };
    say(SETTLED);
    expect(await settle(offerOf(second.url, first.url), history)).toMatchObject({ kind: 'settled', via: before.via });
    expect(second.requests).toEqual([]);
    say('', 401);
    expect(await settle(offerOf(second.url, first.url), history)).toMatchObject({ kind: 'settled' });
    expect(second.requests.length).toBe(1);
    expect(await settle(offerOf(second.url), history)).toMatchObject({ kind: 'settled' });
    expect(before.via).not.toContain('127.0.0.1');
  });
});

describe('time', () => {
  const untilIdle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

  test.each([
    ['verify', 5000],
    ['settle', 15_000],
  ] as const)(
    'behaviour: a call to %s has the time that the receiver gives, for everything',
    async (operation, limitMs) => {
      const time = fakeTime();
      const arrived = Promise.withResolvers<void>();
      first.answer = (_, res) => {
        res.writeHead(200);
        res.write('{');
        arrived.resolve();
      };
      const { rail, calls } = makeRail({ schedule: time.schedule, clock: time.clock });
      const offer = offerOf(first.url);
      const result = operation === 'verify' ? rail.verify(PRESENTED, offer) : rail.settle(PRESENTED, offer, FRESH, GO);
      await arrived.promise;
      time.advance(limitMs - 1);
      expect(await Promise.race([result, untilIdle()])).toBeUndefined();
      time.advance(1);
      expect((await result).kind).toBe(operation === 'verify' ? 'unavailable' : 'unknown');
      expect(calls).toEqual([`${operation}:failed`]);
      expect(time.pending()).toBe(0);
    },
  );

  test('behaviour: a facilitator that is out of time for verifying makes way for the next', async () => {
    const time = fakeTime();
    first.answer = () => time.advance(5000);
    const { rail } = makeRail({ schedule: time.schedule, clock: time.clock });
    expect(await rail.verify(PRESENTED, offerOf(first.url, second.url))).toEqual({ kind: 'valid', payer: PAYER });
  });

  test('behaviour: after slow calls in a row nobody waits any more, until one answers again', async () => {
    const time = fakeTime();
    first.answer = () => time.advance(5000);
    const { rail, calls } = makeRail({ schedule: time.schedule, clock: time.clock });
    const offer = offerOf(first.url, second.url);
    for (let i = 0; i < 8; i++) await rail.verify(PRESENTED, offer);
    expect(first.requests.length).toBe(5);
    expect(second.requests.length).toBe(8);
    expect(calls.filter((call) => call === 'verify:skipped').length).toBe(3);
    say({ isValid: true, payer: PAYER });
    time.advance(1000);
    await rail.verify(PRESENTED, offer);
    expect(first.requests.length).toBe(6);
    expect(second.requests.length).toBe(8);
  });

  test('attack: answers that only this payment provokes do not shut others out', async () => {
    const { rail, calls } = makeRail();
    say({ error: 'boom' }, 500);
    for (let i = 0; i < 8; i++) await rail.verify(PRESENTED, offerOf(first.url));
    expect(first.requests.length).toBe(8);
    expect(calls).not.toContain('verify:skipped');
  });

  test('attack: a facilitator that stalls holds so many calls and no more, and settling has places of its own', async () => {
    const time = fakeTime();
    const { rail, calls } = makeRail({ schedule: time.schedule, clock: time.clock });
    const stalled = Promise.withResolvers<void>();
    first.answer = (req, res) => {
      if (req.url === '/settle') return json(res, SETTLED);
      if (first.requests.length === 2) stalled.resolve();
    };
    const offer = makeOffer({ facilitators: [facilitatorAt(first.url, {}, { calls: 2, waiting: 1 })] });
    const waiting = Array.from({ length: 3 }, () => rail.verify(PRESENTED, offer));
    await stalled.promise;
    expect(await rail.verify(PRESENTED, offer)).toMatchObject({
      kind: 'unavailable',
      detail: expect.stringContaining('waiting'),
    });
    expect(await rail.settle(PRESENTED, offer, FRESH, GO)).toMatchObject({ kind: 'settled' });
    time.advance(5000);
    await Promise.all(waiting);
    expect(first.requests.filter(({ url }) => url === '/verify').length).toBe(2);
    expect(calls.filter((call) => call === 'verify:skipped').length).toBe(2);
  });

  test('behaviour: a place is free again once its call has ended, however it did', async () => {
    const { rail } = makeRail();
    const offer = makeOffer({ facilitators: [facilitatorAt(first.url, {}, { calls: 1, waiting: 0 })] });
    expect((await rail.verify(PRESENTED, offer)).kind).toBe('valid');
    first.answer = (req) => req.socket.destroy();
    expect((await rail.verify(PRESENTED, offer)).kind).toBe('unavailable');
    say({ isValid: true });
    expect((await rail.verify(PRESENTED, offer)).kind).toBe('valid');
  });

  test('behaviour: settlements wait for a place however many they are; one that finds none in its time was not sent', async () => {
    const time = fakeTime();
    const { rail } = makeRail({ schedule: time.schedule, clock: time.clock });
    const asked = Promise.withResolvers<void>();
    first.answer = () => asked.resolve();
    const offer = makeOffer({ facilitators: [facilitatorAt(first.url, {}, { calls: 1, waiting: 0 })] });
    const stalled = rail.settle(PRESENTED, offer, FRESH, GO);
    await asked.promise;
    const late = rail.settle(PRESENTED, offer, FRESH, GO);
    await expect.poll(time.pending).toBe(1);
    time.advance(14_999);
    const patient = [1, 2, 3].map(() => rail.settle(PRESENTED, offer, FRESH, GO));
    await expect.poll(time.pending).toBe(4);
    say(SETTLED);
    time.advance(1);
    expect(await late).toMatchObject({ kind: 'not_carried_out' });
    expect(await stalled).toMatchObject({ kind: 'unknown' });
    for (const settlement of await Promise.all(patient)) expect(settlement).toMatchObject({ kind: 'settled' });
    expect(first.requests.length).toBe(4);
  });
});
