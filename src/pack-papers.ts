// `npm pack`: the papers of the package. README.md gives way to the package's own (docs/package.md), and a link of another
// paper that would lead out of the package becomes plain words. `after` gives the checkout its own papers back, and so does
// `before` if an earlier pack was broken off.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '..');
const PAPERS = [
  ...['README.md', 'SECURITY.md', 'CHANGELOG.md', 'config/README.md', 'docs/paying.md', 'docs/operating.md'],
  ...['docs/assertion.md', 'docs/selling.md'],
];

function keptOf(paper: string): string {
  const { dir, base } = path.parse(path.join(ROOT, paper));
  return path.join(dir, `.checkout-${base}`);
}

function restore(): void {
  for (const paper of PAPERS) if (existsSync(keptOf(paper))) renameSync(keptOf(paper), path.join(ROOT, paper));
}

function isPacked(file: string): boolean {
  return file === 'LICENSE' || PAPERS.includes(file) || /^(?:config|dist)(?:\/|$)/.test(file);
}

/** Rewrites links from where the paper lies in the package; those that lead nowhere there become words. */
function packedText(paper: string): string {
  const source = paper === 'README.md' ? 'docs/package.md' : paper;
  const text = readFileSync(path.join(ROOT, source), 'utf8');
  return text.replace(/\[([^\]]+)\]\(([^)\s]+)\)/g, (whole: string, words: string, link: string) => {
    const [target = '', anchor] = link.split('#');
    if (target === '' || /^[a-z]+:/.test(link)) return whole;
    const meant = path.posix.join(path.posix.dirname(source), target);
    if (!isPacked(meant)) return words;
    const near = path.posix.relative(path.posix.dirname(paper), meant);
    return `[${words}](${near}${anchor === undefined ? '' : `#${anchor}`})`;
  });
}

restore();
if (process.argv[2] === 'before') {
  for (const paper of PAPERS) {
    const packed = packedText(paper);
    renameSync(path.join(ROOT, paper), keptOf(paper));
    writeFileSync(path.join(ROOT, paper), packed);
  }
}
