// The requests that load is made of. No two of a kind are alike where likeness would be kind to caches.
import { makeUpPayment, readTerms } from '../../../support/made-up-payment.ts';

export type Kind =
  /** Unpaid requests to priced routes, every path new; one in eight is long. */
  | { readonly name: 'unpaid' }
  /** The first `routes` routes of a crawl, one after the other. */
  | { readonly name: 'crawl'; readonly routes: number; readonly as: 'json' | 'page' }
  /** Payments that read well and that nobody signed, each another one. `terms` is the header of a 402. */
  | { readonly name: 'payment'; readonly terms: string }
  /** Credentials that are wrong in many ways. */
  | { readonly name: 'junk'; readonly terms: string }
  /** Tokens and API keys that nobody issued, on endpoints of the registry. */
  | { readonly name: 'stranger' }
  /** `/match` with paths of 8 KiB. */
  | { readonly name: 'match'; readonly key: string }
  /** New routes, `prefix` in their pattern. */
  | { readonly name: 'register'; readonly key: string; readonly prefix: string };

const LONG_PATH = 8192;

/** A request by its number. */
export function makeRequest(kind: Kind, port: number): (index: number) => Buffer {
  const own = process.pid.toString(36);
  const host = `Host: 127.0.0.1:${port}\r\n`;
  const get = (target: string, headers = ''): Buffer =>
    Buffer.from(`GET ${target} HTTP/1.1\r\n${host}${headers}\r\n`, 'latin1');
  switch (kind.name) {
    case 'unpaid': {
      const tail = 'x'.repeat(400);
      return (index) => get(`/paid/${own}/${index.toString(36)}${index % 8 === 0 ? `/${tail}?q=${tail}` : ''}`);
    }
    case 'crawl': {
      const headers = kind.as === 'page' ? 'Accept: text/html\r\nUser-Agent: Mozilla/5.0\r\n' : '';
      return (index) => get(`/crawl/${index % kind.routes}`, headers);
    }
    case 'payment': {
      const terms = readTerms(kind.terms);
      return () => get('/paid/a', `PAYMENT-SIGNATURE: ${makeUpPayment(terms, Date.now())}\r\n`);
    }
    case 'junk': {
      const makers = junkMakers(readTerms(kind.terms));
      return (index) => {
        const make = makers[index % makers.length];
        return get(`/paid/${own}/${index.toString(36)}`, make?.(index) ?? '');
      };
    }
    case 'stranger': {
      const paths = [
        '/v1/billing/protected-routes',
        '/v1/protected-routes/routes',
        '/v1/billing/charges',
        '/v1/ledger/claims?due=true',
      ];
      const bearers = [
        (index: number) => `tg_${index.toString(16).padStart(16, '0')}_${'a'.repeat(43)}`,
        (index: number) => `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI${index.toString(36)}.${'b'.repeat(43)}`,
        (index: number) => `k${index.toString(36)}${'x'.repeat(400)}`,
        (index: number) => `${'eyJ'.padEnd(5000, 'c')}.${index}.x`,
      ];
      return (index) => {
        const bearer = bearers[index % bearers.length];
        return get(paths[(index >> 2) % paths.length] ?? '/', `Authorization: Bearer ${bearer?.(index)}\r\n`);
      };
    }
    case 'match': {
      const shapes = ['a', 'a/', '%41', '%2541', 'A;b=c/', './', '%C3%A9/'];
      return (index) => {
        const shape = shapes[index % shapes.length] ?? 'a';
        const path = `/${index.toString(36)}/${shape.repeat(LONG_PATH / shape.length)}`.slice(0, LONG_PATH);
        return get(`/v1/protected-routes/match?method=GET&path=${path}`, `Authorization: Bearer ${kind.key}\r\n`);
      };
    }
    case 'register':
      return (index) => {
        const body = JSON.stringify({
          route_pattern: `/${kind.prefix}/${own}/${index.toString(36)}`,
          method: 'GET',
          amount: '0.01',
        });
        return Buffer.from(
          `POST /v1/protected-routes/routes/register HTTP/1.1\r\n${host}Authorization: Bearer ${kind.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        );
      };
    default:
      return kind satisfies never;
  }
}

type Terms = ReturnType<typeof readTerms>;

/** Header lines, each wrong in another way. */
function junkMakers(terms: Terms): ((index: number) => string)[] {
  const v2 = (value: string): string => `PAYMENT-SIGNATURE: ${value}\r\n`;
  const json = (value: unknown): string => v2(Buffer.from(JSON.stringify(value)).toString('base64'));
  const paid = (): string => makeUpPayment(terms, Date.now());
  return [
    () => v2('!!!!'),
    (index) => v2(Buffer.from(`junk ${index}`).toString('base64')),
    (index) => json({ x402Version: 2, accepted: {}, payload: {}, index }),
    (index) => json({ x402Version: 1, scheme: 'exact', index }),
    () => v2(`${paid().slice(0, -4)}AAAA`),
    () => v2(paid()) + v2(paid()),
    () => v2(makeUpPayment({ ...terms, amount: '1' }, Date.now())),
    () => v2(makeUpPayment({ ...terms, payTo: `0x${'22'.repeat(20)}` }, Date.now())),
    () => v2(makeUpPayment({ ...terms, asset: `0x${'33'.repeat(20)}` }, Date.now())),
    () => v2(makeUpPayment(terms, 0)),
    // Reads well; the facilitator says no.
    () => v2(paid()),
    () => `X-PAYMENT: ${paid()}\r\n`,
  ];
}
