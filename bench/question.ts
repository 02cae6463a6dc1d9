// A question to a decision listener as Caddy asks it: the target stands in a header, and the request line says nothing. The loads
// send the same bytes, whichever program does.

/** Secret that the listener of the bench wants. */
export const SECRET = 'bench-secret-of-the-proxy';

/** What a load sends for each path: the request itself, or the question whether it may pass. */
export type Asked = 'request' | 'question';

/** Path and headers for `target`, beside Host. */
export function lineOf(asked: Asked, target: string): { path: string; headers: Readonly<Record<string, string>> } {
  if (asked === 'request') return { path: target, headers: {} };
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
export function headLines(asked: Asked, target: string): string {
  return Object.entries(lineOf(asked, target).headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
}
