// Program and style of the page for people, which src/bundle-page.ts makes from src/page. The build puts its result in the
// place of this file.
import path from 'node:path';
import { makePageAssets, type PageAssets } from '../../host/page-assets.ts';

export function readPageAssets(): PageAssets {
  return makePageAssets(path.resolve(import.meta.dirname, '../../bundle-page.ts'));
}
