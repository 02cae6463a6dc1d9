// Program and style of the page, as text that stands in its document. src/bundle-page.ts makes them from src/page. The
// build runs it once and puts its result in the place of this file. A run from the sources runs it when the first page
// is asked for.
import { execFileSync } from 'node:child_process';
import path from 'node:path';

export type PageAssets = { readonly script: string; readonly style: string };

export function readPageAssets(): PageAssets {
  const bundler = path.resolve(import.meta.dirname, '../../bundle-page.ts');
  return JSON.parse(execFileSync(process.execPath, [bundler], { encoding: 'utf8' })) as PageAssets;
}
