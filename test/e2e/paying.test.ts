// Paying for real: public x402 clients as they are, a real facilitator, a real chain, Tollgate as a process. What the
// reference middleware was measured to get wrong is tried here by name. The chain's balance has the last word.
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPayer } from '../support/chain/payer.ts';
import { PAY_TO, startPaidTollgate, until, type ChargeSeen, type PaidTollgate } from '../support/paid-tollgate.ts';

let paid: PaidTollgate;
const release = new Map<string, () => void>();

beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: [
      ...[
        'GET /report 0.10',
        '* /data/* 0.05',
        'GET /events 0.02',
        'GET /broken 0.10',
        'POST /broken 0.10',
        'GET /slow/* 0.01',
        'GET /moved 0.01',
        'GET /signed 0.01',
        '* /tagged 0.01',
      ],
      ...['GET /big 0.03', 'GET /other 0.10', 'GET /priced 0.10'],
    ],
    // Clients give back what the 402 says of discovery.
    more: 'charges: { max_unsettled_per_payer: 4 }\ndiscovery: { service_name: Example }',
    handle: (req, res) => {
      req.resume();
      const { url = '' } = req;
      if (url.startsWith('/broken')) res.writeHead(500).end('broken');
      else if (url.startsWith('/moved')) res.writeHead(302, { location: '/login' }).end();
      else if (url.startsWith('/signed')) res.writeHead(302, { location: 'http://files.example.net/s?sig=1' }).end();
      else if (url.startsWith('/tagged')) {
        // As Express does it: the handler ran, and only its answer is left out.
        const matches = req.headers['if-none-match'] !== undefined;
        const failed = req.headers['if-match'] !== undefined;
        res.writeHead(failed ? 412 : matches ? 304 : 200, { etag: '"hash-of-the-answer"' });
        res.end(matches || failed ? '' : 'the answer');
      } else if (url.startsWith('/big')) res.end(Buffer.alloc(200_000, 'x'));
      else if (url.startsWith('/slow')) release.set(url, () => res.end('slow but there'));
      else if (url.startsWith('/events')) {
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.write('data: 1\n\n');
        release.set(url, () => res.end('data: 2\n\n'));
      } else
        res
          .writeHead(200, { 'content-type': 'application/json', 'cache-control': 'public, max-age=60' })
          .end(JSON.stringify({ url, told: req.headers }));
    },
  });
}, 180_000);

afterAll(() => paid?.stop());

const last = async (status?: string): Promise<ChargeSeen> =>
  until(`a charge ${status ?? ''}`, async () => {
    const [charge] = await paid.charges();
    return charge !== undefined && (status === undefined || charge.status === status) ? charge : undefined;
  });

/** What arrives at the payee while `run` runs. */
async function earning(run: () => Promise<void>): Promise<bigint> {
  const before = await paid.earned();
  await run();
  return (await paid.earned()) - before;
}

const receiptOf = (response: Response): Record<string, unknown> =>
  JSON.parse(
    Buffer.from(
      response.headers.get('payment-response') ?? response.headers.get('x-payment-response') ?? '',
      'base64',
    ).toString(),
  ) as Record<string, unknown>;

describe('unmodified clients', () => {
  test('behaviour: @x402/fetch v2 pays, is served, and the money is there', async () => {
    const earned = await earning(async () => {
      const response = await paid.payer.fetch(paid.url('/report?x=1'));
      const body = (await response.json()) as { url: string; told: Record<string, string> };
      expect([response.status, body.url]).toEqual([200, '/report?x=1']);
      expect(receiptOf(response)).toMatchObject({
        success: true,
        payer: paid.payer.address.toLowerCase(),
        network: 'eip155:84532',
      });
      expect(response.headers.get('cache-control')).toBe('private, no-store');
      expect(body.told).toMatchObject({
        'tollgate-payer': paid.payer.address.toLowerCase(),
        'tollgate-amount': '0.10',
        'tollgate-currency': 'USD',
        'tollgate-network': 'eip155:84532',
      });
      expect(Object.keys(body.told).filter((name) => name.includes('payment'))).toEqual([]);
    });
    expect(earned).toBe(100_000n);
    expect(await last('delivered')).toMatchObject({ status: 'delivered', payer: paid.payer.address.toLowerCase() });
  });

  test('behaviour: a v1 client pays, too', async () => {
    const earned = await earning(async () => {
      const response = await paid.payer.fetchV1(paid.url('/report'));
      expect(response.status).toBe(200);
      expect(receiptOf(response)).toMatchObject({ success: true, network: 'base-sepolia' });
      const { told } = (await response.json()) as { told: Record<string, string> };
      expect(told['tollgate-network']).toBe('eip155:84532');
    });
    expect(earned).toBe(100_000n);
  });

  test('behaviour: a POST is settled before it is forwarded', async () => {
    const earned = await earning(async () => {
      const response = await paid.payer.fetch(paid.url('/data/x'), { method: 'POST', body: 'hello' });
      expect([response.status, receiptOf(response)['success']]).toEqual([200, true]);
    });
    expect(earned).toBe(50_000n);
  });

  test('behaviour: a HEAD costs', async () => {
    expect((await fetch(paid.url('/report'), { method: 'HEAD' })).status).toBe(402);
    const earned = await earning(async () => {
      expect((await paid.payer.fetch(paid.url('/report'), { method: 'HEAD' })).status).toBe(200);
    });
    expect(earned).toBe(100_000n);
  });

  test('behaviour: an event stream flows while it is paid for, nothing is buffered', async () => {
    const earned = await earning(async () => {
      const response = await paid.payer.fetch(paid.url('/events'));
      const reader = response.body?.getReader();
      expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('data: 1\n\n');
      release.get('/events')?.();
      expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('data: 2\n\n');
    });
    expect(earned).toBe(20_000n);
  });
});

describe('one payment, one service', () => {
  test('behaviour: of ten identical concurrent requests one is served, the others are told that it is in use', async () => {
    const credential = await paid.sign(await paid.quote('/slow/ten'));
    const before = paid.upstream.seen.filter(({ url }) => url === '/slow/ten').length;
    const earned = await earning(async () => {
      const answers = Array.from({ length: 10 }, () => paid.pay('/slow/ten', credential));
      await until('the upstream was asked', async () => release.has('/slow/ten'));
      // Nine are answered while the one is being served.
      const statuses: number[] = [];
      for (const answer of answers) void answer.then(({ status }) => statuses.push(status));
      await until('nine answers', async () => statuses.length === 9);
      expect(statuses).toEqual(Array(9).fill(409));
      release.get('/slow/ten')?.();
      expect((await Promise.all(answers)).map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
        200,
        ...Array<number>(9).fill(409),
      ]);
    });
    expect(paid.upstream.seen.filter(({ url }) => url === '/slow/ten').length).toBe(before + 1);
    expect(earned).toBe(10_000n);
  });

  test('attack: a spent payment buys nothing more, in whatever spelling and on whatever route', async () => {
    const accepted = await paid.quote('/report');
    const credential = await paid.sign(accepted);
    expect((await paid.pay('/report', credential)).status).toBe(200);
    await last('delivered');
    const decoded = JSON.parse(Buffer.from(credential, 'base64').toString()) as {
      payload: { authorization: Record<string, string> };
    };
    decoded.payload.authorization['nonce'] =
      decoded.payload.authorization['nonce']?.toUpperCase().replace('0X', '0x') ?? '';
    const respelled = Buffer.from(JSON.stringify(decoded, null, 1)).toString('base64');
    const before = [paid.upstream.seen.length, paid.facilitator.calls.length];
    const again = await paid.pay('/report', respelled);
    expect([again.status, again.headers.get('tollgate-reason')]).toEqual([402, 'payment_already_used']);
    expect((await paid.pay('/other', credential)).status).toBe(402);
    expect([paid.upstream.seen.length, paid.facilitator.calls.length]).toEqual(before);
  });

  test('attack: a spent payment buys nothing more after a restart, whether the facilitator is there or not', async () => {
    const credential = await paid.sign(await paid.quote('/report'));
    expect((await paid.pay('/report', credential)).status).toBe(200);
    await last('delivered');
    await paid.restart();
    const before = paid.upstream.seen.length;
    const again = async (): Promise<unknown> => {
      const response = await paid.pay('/report', credential);
      return [response.status, response.headers.get('tollgate-reason')];
    };
    paid.facilitator.fault('verify', { kind: 'drop_before' });
    expect(await again()).toEqual([402, 'payment_already_used']);
    paid.facilitator.clearFaults();
    // Met by now.
    const asked = paid.facilitator.calls.length;
    expect(await again()).toEqual([402, 'payment_already_used']);
    expect(paid.facilitator.calls.length).toBe(asked);
    await paid.restart();
    expect(await again()).toEqual([402, 'payment_already_used']);
    expect(paid.upstream.seen.length).toBe(before);
  });

  test('behaviour: an answer that is owed is fetched after a restart, also while the facilitator is away', async () => {
    const credential = await paid.sign(await paid.quote('/broken', 'POST'));
    const post = async (): Promise<number> => (await paid.pay('/broken', credential, { method: 'POST' })).status;
    const earned = await earning(async () => {
      expect(await post()).toBe(500);
      await until('nobody works on it', async () => {
        const charge = await last('settled');
        return charge['updated_at'] !== charge['settled_at'];
      });
      await paid.restart();
      paid.facilitator.fault('verify', { kind: 'drop_before' }, 10);
      const asked = paid.upstream.seen.length;
      // Until its pause is over the upstream is left alone, and the answer stays what it was.
      await until('the upstream was asked again', async () => {
        expect(await post()).toBe(500);
        return paid.upstream.seen.length > asked;
      });
      expect(paid.upstream.seen.length).toBe(asked + 1);
      paid.facilitator.clearFaults();
    });
    expect(earned).toBe(100_000n);
    await paid.restart();
  });

  test('attack: a quote of one route does not pay for another of the same price', async () => {
    const credential = await paid.sign(await paid.quote('/report'));
    const response = await paid.pay('/other', credential);
    const route = 'quote_mismatch: it was made for another route than GET /other';
    expect([response.status, response.headers.get('tollgate-reason')]).toEqual([402, route]);
    const elsewhere = await paid.pay('/data/x', await paid.sign(await paid.quote('/data/x')), { method: 'POST' });
    const method = 'quote_mismatch: it was made for another method than POST';
    expect([elsewhere.status, elsewhere.headers.get('tollgate-reason')]).toEqual([402, method]);
  });

  test('attack: one quote is good for one charge, whoever signs again for it', async () => {
    const accepted = await paid.quote('/report');
    expect((await paid.pay('/report', await paid.sign(accepted))).status).toBe(200);
    const response = await paid.pay('/report', await paid.sign(accepted));
    expect([response.status, response.headers.get('tollgate-reason')]).toEqual([402, 'quote_already_used']);
  });

  test('refuses: a payment that is too small, of somebody without money, or not well-formed, and writes nothing', async () => {
    const accepted = await paid.quote('/report');
    const before = (await paid.charges()).length;
    const poor = await createPayer(paid.chain, 1n);
    for (const credential of [
      await paid.sign(accepted, poor),
      await paid.sign(accepted, paid.payer, { value: 99_999n }),
    ]) {
      const response = await paid.pay('/report', credential);
      expect([response.status, response.headers.get('tollgate-reason')]).toEqual([
        402,
        expect.stringMatching(/^payment_refused/),
      ]);
      expect(response.headers.get('payment-required')).not.toBeNull();
    }
    const malformed = await paid.pay('/report', Buffer.from('{"x402Version":2}').toString('base64'));
    expect([malformed.status, malformed.headers.get('content-type')]).toEqual([400, 'application/problem+json']);
    for (const unreadable of [Buffer.from('{"x402Version":1}').toString('base64'), 'not base64']) {
      const v1 = await fetch(paid.url('/report'), { headers: { 'x-payment': unreadable } });
      expect([v1.status, v1.headers.get('content-type')]).toEqual([400, 'application/json']);
      const { accepts } = (await (await fetch(paid.url('/report'))).json()) as { accepts: unknown[] };
      expect(accepts).toHaveLength(1);
      expect(await v1.json()).toEqual({ x402Version: 1, error: expect.stringMatching(/^The payment/), accepts });
    }
    expect((await paid.charges()).length).toBe(before);
  });

  test('behaviour: a quote keeps its price when the route’s changes', async () => {
    const accepted = await paid.quote('/priced');
    const token = await paid.cli('token');
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const base = `${paid.tollgate().url('registry')}/v1/billing/protected-routes`;
    const { data } = (await (await fetch(`${base}?q=/priced`, { headers })).json()) as { data: [{ id: string }] };
    await fetch(`${base}/${data[0].id}`, { method: 'PATCH', headers, body: '{"amount":"0.50"}' });
    const earned = await earning(async () => {
      expect((await paid.pay('/priced', await paid.sign(accepted))).status).toBe(200);
    });
    expect(earned).toBe(100_000n);
    expect((await paid.quote('/priced')).amount).toBe('500000');
  });
});

describe('nobody is charged for nothing', () => {
  test('behaviour: an upstream error and a redirect to this API are not charged', async () => {
    const earned = await earning(async () => {
      const broken = await paid.pay('/broken', await paid.sign(await paid.quote('/broken')));
      expect([broken.status, broken.headers.get('payment-response'), await broken.text()]).toEqual([
        500,
        null,
        'broken',
      ]);
      const moved = await paid.pay('/moved', await paid.sign(await paid.quote('/moved')));
      expect([moved.status, moved.headers.get('payment-response')]).toEqual([302, null]);
    });
    expect(earned).toBe(0n);
    // The response did not wait for it.
    await until('both are released', async () =>
      (await paid.charges()).slice(0, 2).every(({ status }) => status === 'released'),
    );
  });

  test('attack: a redirect to another host is charged, also for a client that calls that host its own', async () => {
    const credential = await paid.sign(await paid.quote('/signed'));
    const earned = await earning(async () => {
      const head = await new Promise<string>((resolve, reject) => {
        const socket = connect(paid.tollgate().port('proxy'), '127.0.0.1', () => {
          socket.write(
            `GET /signed HTTP/1.1\r\nHost: files.example.net\r\nPAYMENT-SIGNATURE: ${credential}\r\nConnection: close\r\n\r\n`,
          );
        });
        let text = '';
        socket.setEncoding('latin1').on('data', (part: string) => (text += part));
        socket.on('close', () => resolve(text)).on('error', reject);
      });
      expect(head).toContain('HTTP/1.1 302');
      expect(head).toMatch(/payment-response: /i);
    });
    expect(earned).toBe(10_000n);
  });

  test('attack: an answer about the copy that the client has is not to be had for nothing', async () => {
    const credential = await paid.sign(await paid.quote('/tagged'));
    const earned = await earning(async () => {
      const response = await paid.pay('/tagged', credential, { headers: { 'If-None-Match': '*', 'If-Match': '"x"' } });
      expect([response.status, await response.text()]).toEqual([200, 'the answer']);
    });
    expect(earned).toBe(10_000n);
  });

  test('behaviour: a conditional write is settled first, and 412 to it is charged', async () => {
    const put = await paid.sign(await paid.quote('/tagged', 'PUT'));
    const earned = await earning(async () => {
      const response = await paid.pay('/tagged', put, { method: 'PUT', headers: { 'If-Match': '"x"' } });
      expect([response.status, receiptOf(response)['success']]).toEqual([412, true]);
    });
    expect(earned).toBe(10_000n);
  });

  test('attack: a payment with less than a minute left is settled first, so that no time runs out on us', async () => {
    const accepted = await paid.quote('/broken');
    const soon = BigInt(Math.floor(Date.now() / 1000)) + 50n;
    const credential = await paid.sign(accepted, paid.payer, { validBefore: soon });
    const earned = await earning(async () => {
      const response = await paid.pay('/broken', credential);
      expect([response.status, receiptOf(response)['success']]).toEqual([500, true]);
    });
    expect(earned).toBe(100_000n);
  });

  test('attack: a payer who leaves three times before the status line settles first from then on', async () => {
    const leaver = await createPayer(paid.chain);
    for (let i = 0; i < 3; i++) {
      const target = `/slow/leaver${i}`;
      const credential = await paid.sign(await paid.quote(target), leaver);
      const leaving = new AbortController();
      const answer = paid.pay(target, credential, { signal: leaving.signal });
      await until('the upstream was asked', async () => release.has(target));
      leaving.abort();
      await expect(answer).rejects.toThrow();
      await last('released');
    }
    const credential = await paid.sign(await paid.quote('/slow/leaver3'), leaver);
    const earned = await earning(async () => {
      const answer = paid.pay('/slow/leaver3', credential);
      await until('it is settled before the upstream has answered', async () =>
        (await last()).status === 'settled' ? true : undefined,
      );
      await until('the upstream was asked', async () => release.has('/slow/leaver3'));
      release.get('/slow/leaver3')?.();
      expect((await answer).status).toBe(200);
    });
    expect(earned).toBe(10_000n);
  });

  test('behaviour: a payment that was released may be used again, ten times in all', async () => {
    const credential = await paid.sign(await paid.quote('/broken'));
    for (let i = 0; i < 10; i++) {
      expect((await paid.pay('/broken', credential)).status).toBe(500);
      await last('released');
    }
    const response = await paid.pay('/broken', credential);
    expect([response.status, response.headers.get('tollgate-reason')]).toEqual([402, 'payment_already_used']);
  });

  test('behaviour: a client that leaves before the upstream answered is not charged', async () => {
    const credential = await paid.sign(await paid.quote('/slow/leaves'));
    const earned = await earning(async () => {
      const leaving = new AbortController();
      const answer = paid.pay('/slow/leaves', credential, { signal: leaving.signal });
      await until('the upstream was asked', async () => release.has('/slow/leaves'));
      leaving.abort();
      await expect(answer).rejects.toThrow();
      await last('released');
    });
    expect(earned).toBe(0n);
  });

  test('behaviour: an upstream that fails after settling is asked again after a pause, without a second charge', async () => {
    const credential = await paid.sign(await paid.quote('/broken', 'POST'));
    const asked = (): number => paid.upstream.seen.filter(({ url }) => url === '/broken').length;
    const before = asked();
    const statuses = new Set<number>();
    const ask = async (): Promise<void> => {
      const response = await paid.pay('/broken', credential, { method: 'POST' });
      statuses.add(response.status);
      await response.arrayBuffer();
      await until('nobody works on it', async () =>
        (await last()).undelivered === 'upstream_failed' ? true : undefined,
      );
    };
    const earned = await earning(async () => {
      await ask();
      await ask();
      expect(asked() - before).toBe(1);
      await until('the pause is over', async () => {
        await ask();
        return asked() - before === 2;
      });
    });
    expect([...statuses]).toEqual([500]);
    expect(earned).toBe(100_000n);
  });
});

describe('what is lost comes back', () => {
  /** Sends a paid request and resets the connection once `bytes` of the answer were read. */
  function payAndLeave(target: string, credential: string, after: (received: string) => boolean): Promise<void> {
    return new Promise((resolve) => {
      let received = '';
      const socket = connect(paid.tollgate().port('proxy'), '127.0.0.1', () => {
        socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nPAYMENT-SIGNATURE: ${credential}\r\n\r\n`);
      });
      socket.setEncoding('latin1').on('data', (text: string) => {
        received += text;
        if (!after(received)) return;
        socket.resetAndDestroy();
        resolve();
      });
    });
  }

  test('behaviour: an answer whose connection was lost after settling is fetched again, without a second charge', async () => {
    const credential = await paid.sign(await paid.quote('/big'));
    const earned = await earning(async () => {
      await payAndLeave('/big', credential, (received) => received.includes('\r\n\r\n'));
      const response = await until('the answer', async () => {
        const again = await paid.pay('/big', credential);
        return again.status === 409 ? undefined : again;
      });
      // Where everything had already been handed to the socket it counts as delivered.
      if (response.status === 200) expect((await response.arrayBuffer()).byteLength).toBe(200_000);
      else expect(response.headers.get('tollgate-reason')).toBe('payment_already_used');
    });
    expect(earned).toBe(30_000n);
  });

  test('behaviour: an answer behind its last byte is there once more for a minute, for its payer alone', async () => {
    const credential = await paid.sign(await paid.quote('/report?once'));
    const earned = await earning(async () => {
      const first = await paid.pay('/report?once', credential);
      const body = await first.text();
      await last('delivered');
      const asked = paid.upstream.seen.length;
      const again = await paid.pay('/report?once', credential);
      expect([again.status, await again.text(), receiptOf(again)]).toEqual([200, body, receiptOf(first)]);
      expect(paid.upstream.seen.length).toBe(asked);
      expect((await paid.pay('/report?other', credential)).status).toBe(402);
      const line = await paid.tollgate().line(({ msg, reason }) => msg === 'request' && reason === 'replayed');
      expect(line).toMatchObject({ outcome: 'paid', status: 200 });
    });
    expect(earned).toBe(100_000n);
  });

  test('behaviour: a facilitator that is away costs nothing, is no 402, and free requests do not notice', async () => {
    const credential = await paid.sign(await paid.quote('/report'));
    paid.facilitator.fault('verify', { kind: 'drop_before' }, 10);
    const response = await paid.pay('/report', credential);
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([
      503,
      'facilitator_unavailable',
    ]);
    expect(response.headers.get('retry-after')).not.toBeNull();
    expect((await fetch(paid.url('/free'))).status).toBe(200);
    paid.facilitator.clearFaults();
    const earned = await earning(async () => {
      await until(
        'the facilitator is asked again',
        async () => (await paid.pay('/report', credential)).status === 200,
        20_000,
      );
    });
    expect(earned).toBe(100_000n);
  });

  test('behaviour: a settlement whose answer was lost is 503 with its charge id, found on the chain, and then served', async () => {
    const credential = await paid.sign(await paid.quote('/report'));
    paid.facilitator.fault('settle', { kind: 'drop_after' });
    const earned = await earning(async () => {
      const response = await paid.pay('/report', credential);
      const body = (await response.json()) as { code: string; charge_id: string };
      expect([response.status, body.code, response.headers.get('payment-required')]).toEqual([
        503,
        'settlement_unknown',
        null,
      ]);
      const served = await until('the reconciler found it', async () => {
        const again = await paid.pay('/report', credential);
        return again.status === 200 ? again : undefined;
      });
      expect(receiptOf(served)).toMatchObject({
        success: true,
        transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      });
      await until('it is delivered', async () =>
        (await paid.charges()).find(({ id, status }) => id === body.charge_id && status === 'delivered'),
      );
    });
    expect(earned).toBe(100_000n);
    paid.facilitator.clearFaults();
  });

  test('behaviour: kill -9 while settling loses neither the money nor the service', async () => {
    const credential = await paid.sign(await paid.quote('/report'));
    const before = await paid.earned();
    const earned = await earning(async () => {
      paid.facilitator.fault('settle', { kind: 'hold_after' });
      const settling = paid.facilitator.next('settle');
      void paid.pay('/report', credential).catch(() => undefined);
      await settling;
      await until('the money moved', async () => ((await paid.earned()) > before ? true : undefined));
      expect((await last()).status).toBe('settling');
      await paid.restart();
      paid.facilitator.clearFaults();
      // At once, on a busy machine too: no lease of 10 s of the process that is gone is waited for.
      const since = Date.now();
      const again = await paid.pay('/report', credential);
      expect([again.status, receiptOf(again)['success']]).toEqual([200, true]);
      expect(Date.now() - since).toBeLessThan(8_000);
    });
    expect(earned).toBe(100_000n);
  });
});

test('behaviour: the ledger and the chain agree to the last unit', async () => {
  const charges = await paid.charges();
  const settled = charges.filter(({ status }) => ['settled', 'delivered', 'settling'].includes(status));
  const sum = settled.reduce((total, charge) => total + BigInt(charge.amount_atomic), 0n);
  expect(sum).toBe(await paid.chain.balanceOf(PAY_TO));
});

test('behaviour: an operator may take unfinished charges on, and say the last word', async () => {
  await expect(paid.cli('charges', 'reconcile', 'chg_x')).rejects.toMatchObject({ code: 64 });
  await expect(paid.cli('charges', 'reconcile', 'chg_x', '--fail', 'seen on the chain')).rejects.toMatchObject({
    code: 1,
  });
  // A settlement that never went out and that nobody can settle any more: only an operator can tell.
  const credential = await paid.sign(await paid.quote('/report'));
  paid.facilitator.fault('settle', { kind: 'drop_before' }, 1000);
  const { charge_id } = (await (await paid.pay('/report', credential)).json()) as { charge_id: string };
  await until('the command takes it a step further', async () => {
    const taken = await paid.cli('charges', 'reconcile', '--json').catch((error: { stdout: string }) => error.stdout);
    return (JSON.parse(taken) as { id: string; status: string }[]).find(
      ({ id, status }) => id === charge_id && status === 'settling',
    );
  });
  await until('the operator’s word is taken', async () => {
    const said = await paid.cli('charges', 'reconcile', charge_id, '--fail', 'the payer withdrew').catch(() => '');
    return said === `${charge_id}\tfailed`;
  });
  expect((await paid.charges()).find(({ id }) => id === charge_id)).toMatchObject({
    status: 'failed',
    failed_by: 'operator',
  });
  paid.facilitator.clearFaults();
});
