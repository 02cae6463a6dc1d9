// Listeners that take the same address, and an upstream that is one of them: each listener needs a port of its own, and
// a proxy in front of itself would forward for ever.
import { isLoopback, listensClash, parseListen, type Listen } from './addresses.ts';
import { hostOf, parseUrl } from './fields.ts';
import { formatPath, valueAt, type Issue, type Path } from './problems.ts';

const LISTENERS: readonly { readonly path: Path; readonly fallback: string | undefined }[] = [
  { path: ['proxy', 'listen'], fallback: '0.0.0.0:8402' },
  { path: ['registry', 'listen'], fallback: '127.0.0.1:8403' },
  { path: ['sync', 'listen'], fallback: undefined },
  { path: ['admin', 'listen'], fallback: '127.0.0.1:9402' },
];

/** Complaints about listeners; `raw` may be wrong in any way. */
export function listenIssues(raw: Readonly<Record<string, unknown>>): Issue[] {
  const issues: Issue[] = [];
  const bound: { path: Path; listen: Listen; written: boolean }[] = [];
  const { decision } = raw;
  const decisions = (Array.isArray(decision) ? decision : []).map((_, index) => ({
    path: ['decision', index, 'listen'],
    fallback: '127.0.0.1:8404',
  }));
  for (const { path, fallback } of [...LISTENERS, ...decisions]) {
    const section = path[0];
    if (section === undefined || (section !== 'admin' && !Object.hasOwn(raw, section))) continue;
    const value = valueAt(raw, path);
    const listen =
      typeof value === 'string'
        ? parseListen(value)
        : value === undefined && fallback
          ? parseListen(fallback)
          : undefined;
    if (listen === undefined) continue;
    const own = { path, listen, written: value !== undefined };
    const other = bound.find((earlier) => listensClash(earlier.listen, listen));
    if (other) {
      // The reader of the message can only change what was written.
      const [blamed, kept] = own.written || !other.written ? [own, other] : [other, own];
      issues.push({
        path: blamed.path,
        message: `takes the address of ${formatPath(kept.path)}; give each listener a port of its own`,
      });
    }
    bound.push(own);
  }
  const upstream = valueAt(raw, ['proxy', 'upstream']);
  const parsed = typeof upstream === 'string' ? parseUrl(upstream) : undefined;
  if (parsed) {
    const host = hostOf(parsed);
    const target = { host, port: Number(parsed.port || (parsed.protocol === 'https:' ? 443 : 80)) };
    const self = bound.find(({ listen }) => listensClash(listen, target) && (isLoopback(host) || listen.host === host));
    if (self) {
      issues.push({
        path: ['proxy', 'upstream'],
        message: `is Tollgate's own listener ${formatPath(self.path)}; write the address of your API`,
      });
    }
  }
  return issues;
}
