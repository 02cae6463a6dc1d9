// Advises on undeclared methods, by what the upstream did with those that were tried. Without a trial the advice is
// `pay`: an upstream that answers any method alike gives a GET route away to POST.
import type { PathReport } from './path.ts';

type MethodAdvice = { readonly undeclaredMethods: 'pay' | 'forward'; readonly why: string };

export function adviseMethods(reports: readonly PathReport[], tried: readonly string[]): MethodAdvice {
  const methods = reports
    .flatMap(({ told }) => (told.ok ? told.methods : []))
    .filter(({ method }) => method !== 'HEAD');
  const alike = [...new Set(methods.flatMap(({ method, alike: answered }) => (answered ? [method] : [])))];
  if (alike.length > 0) return { undeclaredMethods: 'pay', why: `${alike.join(', ')} is answered like GET` };
  if (tried.length === 0 || methods.length === 0)
    return { undeclaredMethods: 'pay', why: 'other methods were not tried; --methods POST,PUT,PATCH,DELETE does' };
  return {
    undeclaredMethods: 'forward',
    why: `none of ${methods.map(({ method }) => method).join(', ')} is answered like GET`,
  };
}
