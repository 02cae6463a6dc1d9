// The `page` section: what it takes, and what it says of what it does not.
import { afterAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/process.ts';
import { configOf, problemsOf } from './support.ts';

const files = temporaryFolder();
afterAll(files.remove);

const BASE = 'proxy: { upstream: "http://127.0.0.1:3000" }\nregistry: {}\n';
const SVG = '<?xml version="1.0"?>\n<!-- a logo -->\n<svg xmlns="http://www.w3.org/2000/svg"/>';
files.write('logo.svg', SVG);
files.write('logo.txt', 'a picture');
files.write('large.svg', `${SVG}${' '.repeat(16_384)}`);

const page = (lines: string): string => `${BASE}page: { ${lines} }\n`;
const problems = (lines: string): string[] =>
  problemsOf(page(lines)).map((problem) => problem.replace(/^\d+:\d+ /, ''));

describe('behaviour', () => {
  test('the page is on if nothing is said', () => {
    expect(configOf(BASE).page).toEqual({
      ...{ enabled: true, name: undefined, logo: undefined, accent: '#1652f0' },
      ...{ support: undefined, termsUrl: undefined, privacyUrl: undefined },
    });
  });

  test('a logo of the page is found beside the file and known by what is in it', () => {
    const { logo } = configOf(page('logo_file: logo.svg'), {}, `${files.folder}/t.yaml`).page;
    expect(logo).toBe(`data:image/svg+xml;base64,${Buffer.from(SVG).toString('base64')}`);
  });
});

describe('refuses', () => {
  test.each([
    ['enabled: maybe', 'page.enabled: is text; write true or false'],
    ['name: " "', 'page.name: is not a name of 1 to 80 characters'],
    ['accent: blue', 'page.accent: is not a colour such as "#1652f0", in quotes'],
    ['accent: "#fff"', 'page.accent: is not a colour such as "#1652f0", in quotes'],
    ['support: help@example.com', 'page.support: is not a mailto: address or an http or https URL'],
    ['support: "javascript:alert(1)"', 'page.support: is not a mailto: address or an http or https URL'],
    ['terms_url: "mailto:a@b.c"', 'page.terms_url: is not an http or https URL'],
    ['privacy_url: "data:text/html,x"', 'page.privacy_url: is not an http or https URL'],
    ['colour: red', 'page.colour: is not known here'],
  ])('a section page of %s is refused', (lines, problem) => {
    expect(problems(lines)).toEqual([expect.stringContaining(problem)]);
  });

  test.each([
    ['none.png', 'names a file that cannot be read (ENOENT)'],
    ['logo.txt', 'names a file of another kind; write a PNG, SVG or WebP file of at most 16384 bytes'],
    ['large.svg', 'bytes; write a PNG, SVG or WebP file of at most 16384 bytes'],
  ])('a page with a logo in %s is refused', (name, problem) => {
    const [found, ...more] = problems(`logo_file: "${files.folder}/${name}"`);
    expect(found).toContain(`page.logo_file: `);
    expect(found).toContain(problem);
    expect(more).toEqual([]);
  });
});
