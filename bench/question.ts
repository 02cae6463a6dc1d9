// What a load sends for a path: the request itself, the same with a pass, or a question to a decision listener as Caddy asks it, whose
// target stands in a header while the request line says nothing. The loads send the same bytes, whichever program does.
import { tokenOf } from './pass-tokens.ts';

/** Secret that the listener of the bench wants. */
export const SECRET = 'bench-secret-of-the-proxy';

/** What a load sends for each path: the request itself, the question whether it may pass, or it with one of so many passes. */
export type Asked = 'request' | 'question' | { readonly passes: number };

export type Line = { readonly path: string; readonly headers: Readonly<Record<string, string>> };

/** What is sent in turn. */
export function linesOf(asked: Asked, paths: readonly string[]): Line[] {
  const count = typeof asked === 'string' ? paths.length : Math.max(paths.length, asked.passes);
  return Array.from({ length: count }, (_, n) => lineOf(asked, paths[n % paths.length] ?? '/', n));
}

/** Path and headers of request number `n` for `target`, beside Host. */
export function lineOf(asked: Asked, target: string, n = 0): Line {
  if (asked === 'request') return { path: target, headers: {} };
  if (asked !== 'question') return { path: target, headers: { 'Tollgate-Pass': tokenOf(n % asked.passes) } };
  return {
    path: '/',
    headers: {
      'X-Forwarded-For': '203.0.113.9',
      'X-Forwarded-Host': 'api.example.com',
      'X-Forwarded-Method': 'GET',
      'X-Forwarded-Proto': 'https',
      'X-Forwarded-Uri': target,
      'Tollgate-Request-Id': '0f3c1c0a-7a55-4a4a-9d0e-6a2f4b8f5c11',
      'Tollgate-Secret': SECRET,
    },
  };
}

/** The same as lines of a head. */
export function headLines({ headers }: Line): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
}
