// The headers of a question as the listener reads them: usual spellings are judged beforehand, and must be judged as all others.
import { describe, expect, test } from 'vitest';
import { DIALECTS } from '../../../src/domain/dialect.ts';
import { createHeaderReader, DOUBLE } from '../../../src/gateway/decision/asked-headers.ts';
import { rulesOf } from '../../../src/gateway/decision/dialect-rules.ts';
import { forgeryOf } from '../../../src/gateway/decision/forged-headers.ts';
import { INBOUND, spellings } from '../../../src/gateway/header-rules.ts';

const OURS = ['tollgate-secret', 'tollgate-request-id', 'tollgate-pass'];
const settings = { ours: new Set(OURS), allowed: new Set(['x-real-url', 'x-method-override']) };
const NAMES = [
  ...INBOUND.keys(),
  ...OURS,
  ...['tollgate-charge-id', 'x-original-url', 'x-original-uri', 'x-original-method', 'x-forwarded-uri'],
  ...['x-forwarded-method', 'x-forwarded-host', 'x-forwarded-path', 'x-rewrite-url', 'x-real-url', 'path-info'],
  ...['x-http-method', 'x-http-method-override', 'x-method-override', 'x-middleware-rewrite', 'sec-ch-ua', 'forwarded'],
].map((name) => name.toLowerCase());

describe.each(DIALECTS)('the reader for %s', (dialect) => {
  const rules = rulesOf(dialect);
  const forgeries = { ...settings, ownPrefix: rules.ownPrefix };
  const read = createHeaderReader(rules, 'tollgate-secret', forgeries);

  test('attack: a forged header is found in each spelling, whether it was judged beforehand or not', () => {
    for (const name of NAMES) {
      const odd = [name.toUpperCase(), name.replaceAll('-', '_'), name.replace('-', '.'), `${name.slice(0, -1)}\u00e9`];
      for (const written of [...spellings(name), ...odd]) {
        const forgery = forgeryOf(written.toLowerCase(), forgeries);
        const { forged, override } = read(['Host', 'a.example', written, 'x', 'Accept', '*/*']);
        expect([written, forged, override]).toEqual([
          written,
          forgery === 'forged' ? written.toLowerCase() : undefined,
          forgery === 'override' ? written.toLowerCase() : undefined,
        ]);
      }
    }
  });

  test('attack: a header is judged by its own name, whatever stood at its place in the question before', () => {
    const usual = ['Host', 'a.example', 'Accept', '*/*', 'Tollgate-Secret', 's'];
    const forged = ['Host', 'a.example', 'Tollgate-Payer', '0x1', 'Tollgate-Secret', 's'];
    for (const raw of [usual, forged, usual, forged, forged, usual])
      expect(read(raw).forged).toBe(raw === forged ? 'tollgate-payer' : undefined);
    const many = Array.from({ length: 200 }, (_, n) => [`X-Name-${n}`, 'x']).flat();
    expect(read(many).forged).toBe(undefined);
    expect(read([...many, 'Tollgate-Payer', '0x1']).forged).toBe('tollgate-payer');
    expect(read([...many, 'X-Name', '0x1']).forged).toBe(undefined);
  });

  test('behaviour: what may come does, what speaks for us or overrides does not', () => {
    expect(read(['Tollgate-Charge-Id', 'x']).forged).toBe('tollgate-charge-id');
    expect(read(['TOLLGATE_SECRET', 'x', 'X_Rewrite_Url', '/']).forged).toBe('tollgate_secret');
    expect(read(['X-Http-Method-Override', 'GET']).override).toBe('x-http-method-override');
    expect(read(['x-method-override', 'GET', 'X-Real-Url', '/', 'tollgate-pass', 'p'])).toMatchObject({
      ...{ forged: undefined, override: undefined },
    });
  });

  test('attack: a header of the question that stands twice, in whatever spelling, has no value', () => {
    const { question } = rules;
    const meant = [
      ['requestId', rules.requestId],
      ['secret', 'tollgate-secret'],
      ['host', 'x-forwarded-host'],
      ...(question === undefined ? [] : [['method', question.method] as const, ['target', question.target] as const]),
    ] as const;
    for (const [meaning, name] of meant) {
      const [lower, capitals] = spellings(name);
      expect(read([capitals, 'a']).values[meaning]).toBe('a');
      for (const again of [lower, capitals, name.toUpperCase()]) {
        expect(read([capitals, 'a', again, 'b']).values[meaning]).toBe(DOUBLE);
        expect(read([capitals, '', again, '', again, 'c']).values[meaning]).toBe(DOUBLE);
      }
    }
    expect(read(['Host', 'a.example']).values).toEqual({
      ...{ method: undefined, target: undefined, url: undefined, host: undefined, requestId: undefined },
      secret: undefined,
    });
  });
});
