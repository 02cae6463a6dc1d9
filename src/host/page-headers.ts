// The headers of an HTML document that holds all it needs. A browser runs its one script and its one style, known by their
// hashes, and nothing that somebody else slipped in. Nobody may frame it, keep it or learn its address. Source: Content
// Security Policy Level 3.
import { createHash } from 'node:crypto';
import type { PageAssets } from './page-assets.ts';

/** Headers of a document with these texts in its one `script` and its one `style` element: flat name, value pairs. */
export function pageHeaders({ script, style }: PageAssets): readonly string[] {
  const policy = [
    `default-src 'none'; script-src '${hashOf(script)}'; style-src '${hashOf(style)}'; img-src data: blob:; connect-src 'self'`,
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  ];
  return [
    ...['Content-Type', 'text/html; charset=utf-8', 'Cache-Control', 'no-store'],
    ...['X-Content-Type-Options', 'nosniff', 'Referrer-Policy', 'no-referrer', 'X-Frame-Options', 'DENY'],
    ...['Content-Security-Policy', policy.join('; ')],
  ];
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
