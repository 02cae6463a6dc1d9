// Answers that wait for a settlement, and answers that are kept for a client that went away.
import { once } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import type { ResponseVerdict } from '../../src/gateway/outcome.ts';
import { createResponseMemory, KeptResponse } from '../../src/gateway/pay/kept-responses.ts';
import { readWhatCame } from '../support/loop-turns.ts';
import { headerOf } from '../support/raw-client.ts';
import { OK, type Script } from '../support/raw-upstream.ts';
import { REQUEST_ID, type SmallGatewayOptions } from '../support/small-gateway.ts';
import { createStages, GET, head, outcomeOf } from '../support/stages.ts';

const { stage } = createStages();

describe('an answer that is held', () => {
  type Decide = (verdict: ResponseVerdict) => void;
  const held = (): {
    decide: () => Decide;
    heads: { status: number; headers: readonly string[] }[];
    hook: SmallGatewayOptions['beforeResponse'];
  } => {
    const waiting: Decide[] = [];
    const heads: { status: number; headers: readonly string[] }[] = [];
    return {
      heads,
      decide: () => {
        const next = waiting.shift();
        if (next === undefined) throw new Error('nothing is held');
        return next;
      },
      hook: (given) => {
        heads.push(given);
        return new Promise((resolve) => waiting.push(resolve));
      },
    };
  };
  const REPLACEMENT = { status: 402, headers: ['Tollgate-Reason', 'settlement_refused'], body: 'no' };

  it('behaviour: nothing of a held answer reaches the client before the verdict, then the added headers and the body do', async () => {
    const { heads, decide, hook } = held();
    const { gateway, client } = await stage(
      (_, socket) => void socket.write(`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}`),
      {
        ...(hook && { beforeResponse: hook }),
      },
    );
    const one = await client();
    one.send(GET);
    await vi.waitFor(() => expect(heads).toHaveLength(1), { interval: 5 });
    expect(heads[0]?.status).toBe(200);
    expect(one.received()).toBe('');
    decide()({ kind: 'stream', headers: ['PAYMENT-RESPONSE', 'receipt'] });
    const answer = await one.answer();
    expect([answer.status, answer.body.toString(), headerOf(answer, 'payment-response')]).toEqual([
      200,
      'ok',
      'receipt',
    ]);
    expect(await outcomeOf(gateway)).toMatchObject({ kind: 'delivered', status: 200 });
  });

  it.each([
    ['GET', 'HTTP/1.1 204 No Content\r\n\r\n', 204],
    ['GET', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', 200],
    ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n', 200],
    ['GET', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 200],
  ])('behaviour: an answer without a body is held as well (%s, %j)', async (method, bytes, status) => {
    const { heads, decide, hook } = held();
    const { client } = await stage((_, socket) => void socket.write(bytes), { ...(hook && { beforeResponse: hook }) });
    const one = await client();
    one.send(head(method));
    await vi.waitFor(() => expect(heads).toHaveLength(1), { interval: 5 });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(one.received()).toBe('');
    decide()({ kind: 'stream', headers: ['PAYMENT-RESPONSE', 'receipt'] });
    const answer = await one.answer(method === 'HEAD');
    expect([answer.status, headerOf(answer, 'payment-response')]).toEqual([status, 'receipt']);
    one.send(head(method));
    await vi.waitFor(() => expect(heads).toHaveLength(2), { interval: 5 });
    decide()({ kind: 'replace', response: REPLACEMENT });
    expect((await one.answer(method === 'HEAD')).status).toBe(402);
    expect(one.received().match(/HTTP\/1\.1 /g)).toHaveLength(2);
  });

  it('behaviour: a replaced answer is all that the client gets, and the connections go on', async () => {
    const { heads, decide, hook } = held();
    const { upstream, gateway, client } = await stage(undefined, { ...(hook && { beforeResponse: hook }) });
    const one = await client();
    one.send(GET);
    await vi.waitFor(() => expect(heads).toHaveLength(1), { interval: 5 });
    decide()({ kind: 'replace', response: REPLACEMENT });
    const answer = await one.answer();
    expect([answer.status, answer.body.toString(), headerOf(answer, 'tollgate-reason')]).toEqual([
      402,
      'no',
      'settlement_refused',
    ]);
    // As every answer has it: `tollgate why` takes it.
    expect(headerOf(answer, 'x-request-id')).toBe(REQUEST_ID);
    expect(await outcomeOf(gateway)).toMatchObject({ kind: 'replaced', status: 402 });
    one.send(GET);
    await vi.waitFor(() => expect(heads).toHaveLength(2), { interval: 5 });
    decide()({ kind: 'stream', headers: [] });
    expect((await one.answer()).body.toString()).toBe('ok');
    expect(upstream.requests).toHaveLength(2);
  });

  it.each(['stays', 'leaves'])(
    'behaviour: a replaced answer that cannot be had twice is read on all the same (the client %s)',
    async (client_) => {
      const { heads, decide, hook } = held();
      const half: Script = (_, socket) => void socket.write('HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\n01234');
      const { upstream, gateway, client } = await stage(half, { ...(hook && { beforeResponse: hook }) });
      const response = new KeptResponse(createResponseMemory(), 100);
      const ends: boolean[] = [];
      const one = await client();
      one.send(head('POST', 'Content-Length: 0'));
      await vi.waitFor(() => expect(heads).toHaveLength(1), { interval: 5 });
      if (client_ === 'leaves') {
        one.close();
        await vi.waitFor(() => expect(gateway.listener.inFlight()).toBe(0), { interval: 5 });
      }
      decide()({ kind: 'replace', response: REPLACEMENT, keep: { response, ended: (whole) => ends.push(whole) } });
      if (client_ === 'stays') expect((await one.answer()).status).toBe(402);
      expect((await outcomeOf(gateway)).kind).toBe(client_ === 'stays' ? 'replaced' : 'client_gone');
      expect(ends).toEqual([]);
      upstream.sockets[0]?.write('56789');
      await vi.waitFor(() => expect(ends).toEqual([true]), { interval: 5 });
      expect([response.response().status, response.response().body.toString()]).toEqual([201, '0123456789']);
    },
  );

  it.each([
    ['an upstream that dies', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234', 100],
    ['one byte too many', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234', 9],
  ])('refuses: %s leaves nothing to keep of a replaced answer', async (_what, bytes, limit) => {
    const { heads, decide, hook } = held();
    const { upstream, client } = await stage((_, socket) => void socket.write(bytes), {
      ...(hook && { beforeResponse: hook }),
    });
    const response = new KeptResponse(createResponseMemory(), limit);
    const ends: boolean[] = [];
    const one = await client();
    one.send(head('POST', 'Content-Length: 0'));
    await vi.waitFor(() => expect(heads).toHaveLength(1), { interval: 5 });
    decide()({ kind: 'replace', response: REPLACEMENT, keep: { response, ended: (whole) => ends.push(whole) } });
    expect((await one.answer()).status).toBe(402);
    if (limit === 100) upstream.sockets[0]?.resetAndDestroy();
    else upstream.sockets[0]?.write('56789');
    await vi.waitFor(() => expect(ends).toEqual([false]), { interval: 5 });
  });

  it('behaviour: an upstream that waits while we hold its answer runs into no time-out', async () => {
    const { heads, decide, hook } = held();
    const { client } = await stage((_, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha'), {
      ...(hook && { beforeResponse: hook }),
      timeouts: { idleMs: 60, headersMs: 60 },
    });
    const one = await client();
    one.send(GET);
    await vi.waitFor(() => expect(heads).toHaveLength(1), { interval: 5 });
    await new Promise((resolve) => setTimeout(resolve, 150));
    decide()({ kind: 'stream', headers: [] });
    await one.until('ha');
    expect(await one.closed).toBe('fin');
  });

  it('behaviour: an upstream that dies while its answer is held: nothing was written, the caller answers', async () => {
    const { heads, decide, hook } = held();
    const { upstream, gateway, client } = await stage(
      (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'),
      {
        ...(hook && { beforeResponse: hook }),
      },
    );
    const one = await client();
    one.send(GET);
    await vi.waitFor(() => expect(heads).toHaveLength(1), { interval: 5 });
    const [socket] = upstream.sockets;
    if (socket === undefined) throw new Error('no connection');
    socket.resetAndDestroy();
    await once(socket, 'close');
    await readWhatCame();
    expect(gateway.outcomes).toHaveLength(0);
    decide()({ kind: 'stream', headers: [] });
    expect((await one.answer()).status).toBe(502);
    expect(await outcomeOf(gateway)).toMatchObject({ kind: 'failed', headersSent: false });
  });

  it('behaviour: a client that goes while its answer is held is told when the verdict is there, and the upstream is let go', async () => {
    const { heads, decide, hook } = held();
    const half: Script = (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
    const { upstream, gateway, client } = await stage(half, { ...(hook && { beforeResponse: hook }) });
    const one = await client();
    one.send(GET);
    await vi.waitFor(() => expect(heads).toHaveLength(1), { interval: 5 });
    one.close();
    await vi.waitFor(() => expect(gateway.listener.inFlight()).toBe(0), { interval: 5 });
    expect(gateway.outcomes).toHaveLength(0);
    decide()({ kind: 'stream', headers: [] });
    expect(await outcomeOf(gateway)).toMatchObject({ kind: 'client_gone', status: 200, kept: undefined });
    const [socket] = upstream.sockets;
    if (socket !== undefined && !socket.destroyed) await once(socket, 'close');
  });

  it.each([
    ['rejects', () => Promise.reject(new Error('defect'))],
    [
      'throws',
      () => {
        throw new Error('defect');
      },
    ],
  ])('behaviour: a verdict that never comes because its maker %s: 502, nothing of the answer', async (_what, hook) => {
    const { gateway, client } = await stage(undefined, { beforeResponse: hook });
    const one = await client();
    one.send(GET);
    expect((await one.answer()).status).toBe(502);
    expect(one.received()).not.toContain('ok');
    expect((await outcomeOf(gateway)).kind).toBe('failed');
    expect(gateway.lines.some(({ level }) => level === 'error')).toBe(true);
  });
});

describe('what is said of a client that left', () => {
  it('behaviour: a client that left in the middle of its upload is told as that, not as a failure of the upstream', async () => {
    const { upstream, gateway, client } = await stage(() => undefined, { keepBytes: 100 });
    const one = await client();
    one.send(`${head('POST', 'Content-Length: 20')}half of it`);
    await vi.waitFor(() => expect(upstream.sockets[0]?.bytesRead ?? 0).toBeGreaterThan(50), { interval: 5 });
    one.close();
    expect(await outcomeOf(gateway)).toMatchObject({
      kind: 'client_gone',
      status: undefined,
      headSent: false,
      upload: 'broken_off',
    });
  });

  it('behaviour: a client that left after its upload is told as that, before and after it had a head', async () => {
    for (const sent of ['', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf']) {
      const { upstream, gateway, client } = await stage((_, socket) => void socket.write(sent));
      const one = await client();
      one.send(`${head('POST', 'Content-Length: 5')}whole`);
      await vi.waitFor(() => expect(upstream.requests).toHaveLength(1), { interval: 5 });
      if (sent !== '') await one.until('half');
      one.close();
      expect(await outcomeOf(gateway)).toMatchObject({
        kind: 'client_gone',
        status: sent === '' ? undefined : 200,
        headSent: sent !== '',
        upload: 'whole',
      });
    }
  });
});

describe('an answer that is kept', () => {
  const TEN = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n';

  it('behaviour: a client that goes in the middle of an answer has the whole of it kept', async () => {
    const { upstream, gateway, client } = await stage((_, socket) => void socket.write(`${TEN}01234`), {
      keepBytes: 10,
    });
    const one = await client();
    one.send(head('POST', 'Content-Length: 0'));
    await one.until('01234');
    one.close();
    await vi.waitFor(() => expect(gateway.listener.inFlight()).toBe(0), { interval: 5 });
    upstream.sockets[0]?.write('56789');
    const outcome = await outcomeOf(gateway);
    expect(outcome).toMatchObject({ kind: 'client_gone', status: 200 });
    const kept = outcome.kind === 'client_gone' ? outcome.kept : undefined;
    expect(kept?.response().body.toString()).toBe('0123456789');
    expect(kept?.response().headers).toContain('text/plain');
    expect(kept?.response().headers).not.toContain('Content-Length');
  });

  it('behaviour: a client that goes before there is an answer has the whole of it kept', async () => {
    const { upstream, gateway, client } = await stage(() => undefined, { keepBytes: 10 });
    const one = await client();
    one.send(head('POST', 'Content-Length: 0'));
    await vi.waitFor(() => expect(upstream.requests).toHaveLength(1), { interval: 5 });
    one.close();
    await vi.waitFor(() => expect(gateway.listener.inFlight()).toBe(0), { interval: 5 });
    upstream.sockets[0]?.write(`${TEN}0123456789`);
    const outcome = await outcomeOf(gateway);
    expect(outcome.kind === 'client_gone' && outcome.kept?.response().body.toString()).toBe('0123456789');
  });

  it('refuses: an answer of one byte more than may be kept; the upstream is let go', async () => {
    const long = TEN.replace('10', '100');
    const { upstream, gateway, client } = await stage((_, socket) => void socket.write(`${long}01234`), {
      keepBytes: 9,
    });
    const one = await client();
    one.send(head('POST', 'Content-Length: 0'));
    await one.until('01234');
    one.close();
    await vi.waitFor(() => expect(gateway.listener.inFlight()).toBe(0), { interval: 5 });
    upstream.sockets[0]?.write('56789');
    expect(await outcomeOf(gateway)).toMatchObject({ kind: 'client_gone', status: 200, kept: undefined });
  });

  it('behaviour: an upstream that dies after the client left leaves nothing to keep', async () => {
    const { upstream, gateway, client } = await stage((_, socket) => void socket.write(`${TEN}01234`), {
      keepBytes: 10,
    });
    const one = await client();
    one.send(head('POST', 'Content-Length: 0'));
    await one.until('01234');
    one.close();
    await vi.waitFor(() => expect(gateway.listener.inFlight()).toBe(0), { interval: 5 });
    upstream.sockets[0]?.destroy();
    expect(await outcomeOf(gateway)).toMatchObject({ kind: 'client_gone', status: 200, kept: undefined });
  });

  it('behaviour: a verdict may ask to keep an answer, and a client that stayed simply has it', async () => {
    const { gateway, client } = await stage(undefined, {
      beforeResponse: () =>
        Promise.resolve({ kind: 'stream', headers: [], keep: new KeptResponse(createResponseMemory(), 100) }),
    });
    const one = await client();
    one.send(GET);
    expect((await one.answer()).body.toString()).toBe('ok');
    const outcome = await outcomeOf(gateway);
    expect(outcome.kind === 'delivered' && outcome.kept?.response().body.toString()).toBe('ok');
  });

  it('refuses: an answer that the memory of the process has no room for, until another one gives its room back', async () => {
    const memory = createResponseMemory(3_000);
    const { gateway, client } = await stage(undefined, { keepBytes: 1_000, memory });
    const next = async (): Promise<KeptResponse | undefined> => {
      const before = gateway.outcomes.length;
      const one = await client();
      one.send(GET);
      expect((await one.answer()).body.toString()).toBe('ok');
      const outcome = await vi.waitFor(() => gateway.outcomes[before] ?? expect.fail('no outcome yet'), {
        interval: 2,
      });
      return outcome.kind === 'delivered' ? outcome.kept : undefined;
    };
    const first = await next();
    expect(first?.isKept).toBe(true);
    expect(await next()).toBeUndefined();
    first?.drop();
    expect((await next())?.isKept).toBe(true);
  });
});

it('behaviour: upstreamMs ends with the answer and leaves the holding out', async () => {
  let heldMs = 0;
  const { gateway, client } = await stage(undefined, {
    beforeResponse: async () => {
      const since = performance.now();
      await new Promise((resolve) => setTimeout(resolve, 80));
      heldMs = performance.now() - since;
      return { kind: 'stream', headers: [] };
    },
  });
  const one = await client();
  const sentAt = performance.now();
  one.send(GET);
  await one.answer();
  const wholeMs = performance.now() - sentAt;
  const outcome = await outcomeOf(gateway);
  expect(outcome.kind === 'delivered' && outcome.upstreamMs).toBeLessThan(wholeMs - heldMs);
});
