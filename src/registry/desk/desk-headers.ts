// Headers of every answer under /desk/: a browser runs this origin's own files and nothing else, nobody frames the page or
// learns its address. Sources: Content Security Policy Level 3, Trusted Types, the HTML standard's section 7.1.3.
import { isSecureOrigin } from './desk-host.ts';

const POLICY = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "font-src 'self'"],
  ...["connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ...["require-trusted-types-for 'script'", "trusted-types 'none'"],
].join('; ');

const ALWAYS = [
  ...['Content-Security-Policy', POLICY, 'X-Frame-Options', 'DENY', 'X-Content-Type-Options', 'nosniff'],
  ...['Referrer-Policy', 'no-referrer', 'Cross-Origin-Resource-Policy', 'same-origin'],
];
/** A browser takes them from a secure origin alone, and complains elsewhere. */
const SECURE = ['Cross-Origin-Opener-Policy', 'same-origin', 'Origin-Agent-Cluster', '?1'];
const TRANSPORT = ['Strict-Transport-Security', 'max-age=31536000'];

/** Flat name, value pairs. `origin`: the one that the browser named; undefined if it was refused. */
export function deskHeaders(origin: string | undefined, publicUrl: string | undefined): readonly string[] {
  return [
    ...ALWAYS,
    ...(origin !== undefined && isSecureOrigin(origin) ? SECURE : []),
    ...(publicUrl?.startsWith('https:') ? TRANSPORT : []),
  ];
}
