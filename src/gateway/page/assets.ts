// Program and style of the page, as text that stands in its document. They are made from src/page by src/bundle-page.ts: for
// the built program once and for all, where this file is replaced by what it returns; in a run from the sources when the
// first page is asked for.
import { execFileSync } from 'node:child_process';
import path from 'node:path';

export type PageAssets = { readonly script: string; readonly style: string };

export function readPageAssets(): PageAssets {
  const bundler = path.resolve(import.meta.dirname, '../../bundle-page.ts');
  return JSON.parse(execFileSync(process.execPath, [bundler], { encoding: 'utf8' })) as PageAssets;
}
