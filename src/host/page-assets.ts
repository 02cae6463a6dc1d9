// Program and style of a page in a browser, as text that stands in its document. A bundler, a script of its own, makes
// them and prints them as JSON. A run from the sources calls it when the page is asked for first. The build calls it
// once and puts its result in the place of that call.
import { execFileSync } from 'node:child_process';

export type PageAssets = { readonly script: string; readonly style: string };

/** Runs `bundler`, a path, and reads what it prints. */
export function makePageAssets(bundler: string): PageAssets {
  return JSON.parse(execFileSync(process.execPath, [bundler], { encoding: 'utf8' })) as PageAssets;
}
