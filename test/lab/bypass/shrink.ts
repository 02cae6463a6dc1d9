// Makes a request that gets through as small as it can be while it still does: parts that are not needed go, then the
// target loses characters, an escape at a time.
import { draftOf, type Draft } from './draft.ts';

const MOST_TRIES = 400;

export async function shrink(draft: Draft, passes: (draft: Draft) => Promise<boolean>): Promise<Draft> {
  let tries = 0;
  let best = draft;
  const attempt = async (candidate: Draft): Promise<boolean> => {
    if (tries++ >= MOST_TRIES || JSON.stringify(candidate) === JSON.stringify(best)) return false;
    if (!(await passes(candidate))) return false;
    best = candidate;
    return true;
  };

  const plain = draftOf(best.method, best.target);
  if (!(await attempt(plain))) {
    for (const part of ['before', 'after', 'body', 'writes', 'version'] as const)
      await attempt({ ...best, [part]: plain[part] });
    for (let at = best.headers.length - 1; at >= 0; at--) {
      // Without it the answer's end would have to be waited for.
      if (best.headers[at]?.[0] === 'Connection') continue;
      await attempt({ ...best, headers: best.headers.filter((_, index) => index !== at) });
    }
  }
  await attempt({ ...best, method: 'GET' });

  for (let changed = true; changed;) {
    changed = false;
    for (const size of [12, 6, 3, 2, 1]) {
      const units = unitsOf(best.target);
      for (let at = 0; at < units.length; at++) {
        const target = [...units.slice(0, at), ...units.slice(at + size)].join('');
        if (await attempt({ ...best, target })) {
          changed = true;
          break;
        }
      }
    }
  }
  return best;
}

function unitsOf(target: string): string[] {
  return target.match(/%[0-9A-Fa-f]{2}|[\s\S]/g) ?? [];
}
