// Holds the house against its rules: who may import whom, which file may touch what, and that src/README.md is a true
// map of the tree. A rule that only stands in a document is broken within a month.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { readReadme, renderReadme } from './support/map.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const SRC = path.join(ROOT, 'src');

type Source = {
  readonly file: string;
  readonly folder: string;
  readonly text: string;
  readonly imports: readonly string[];
};

const SOURCES: readonly Source[] = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.tsx?$/.test(file))
  .map((file) => {
    const text = readFileSync(path.join(SRC, file), 'utf8');
    const specifiers = [...text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] ?? '');
    const imports = specifiers.map((specifier) =>
      specifier.startsWith('.') ? path.relative(SRC, path.resolve(SRC, path.dirname(file), specifier)) : specifier,
    );
    return { file, folder: file.includes('/') ? (file.split('/')[0] ?? '') : '', text, imports };
  });

const isOurs = (specifier: string): boolean => /\.tsx?$/.test(specifier);
const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');

/** Folder -> what of ours and which packages it may import. `main`, `compose` and `cli` may import everything. */
const MAY: Readonly<Record<string, { readonly folders: readonly string[]; readonly packages: readonly string[] }>> = {
  domain: { folders: ['domain'], packages: ['zod', 'path-to-regexp', 'lru-cache', 'node:crypto'] },
  host: { folders: ['host'], packages: ['prom-client', 'lru-cache', 'zod'] },
  http: { folders: ['http'], packages: [] },
  gateway: {
    folders: ['gateway', 'domain', 'host', 'http'],
    packages: ['http-proxy-3', 'jose', 'ky', 'zod', 'lru-cache', '@noble/curves', '@noble/hashes'],
  },
  registry: {
    folders: ['registry', 'domain', 'host'],
    packages: ['jose', 'zod', 'path-to-regexp', 'lru-cache', 'pg', 'oauth4webapi'],
  },
  config: { folders: ['config', 'domain', 'host'], packages: ['yaml', 'zod'] },
  page: { folders: ['page', 'domain'], packages: [] },
  client: { folders: ['client'], packages: [] },
  desk: { folders: ['desk'], packages: ['preact', '@preact/signals'] },
  workers: { folders: ['workers', 'host'], packages: [] },
};

describe('who may import whom', () => {
  for (const [folder, { folders, packages }] of Object.entries(MAY)) {
    test(`behaviour: ${folder} imports ${folders.join(', ')} and ${packages.join(', ')}`, () => {
      const sources = SOURCES.filter((source) => source.folder === folder);
      expect(sources.length).toBeGreaterThan(0);
      const wrong = sources.flatMap(({ file, imports }) =>
        imports
          .filter((specifier) =>
            isOurs(specifier)
              ? !folders.includes(specifier.split('/')[0] ?? '')
              : !packages.includes(packageOf(specifier)) && !(specifier.startsWith('node:') && folder !== 'domain'),
          )
          .map((specifier) => `${file} imports ${specifier}`),
      );
      expect(wrong).toEqual([]);
    });
  }

  test.each([
    ['http-proxy-3', ['gateway/sync/relay/registry-relay.ts']],
    [
      'jose',
      ['registry/auth/dashboard-tokens.ts', 'gateway/selling/customers/tokens.ts', 'gateway/rails/x402/auth.ts'],
    ],
    ['prom-client', ['host/metrics.ts', 'host/series.ts']],
    ['path-to-regexp', ['domain/routing/pattern.ts', 'registry/http/router.ts']],
    ['yaml', ['config/']],
    ['@noble/curves', ['gateway/rails/evm/']],
    ['@noble/hashes', ['gateway/rails/evm/']],
    ['ky', ['gateway/rails/', 'gateway/sync/']],
    ['preact', ['desk/']],
    ['oauth4webapi', ['registry/desk/oidc/']],
    ['node:sqlite', ['registry/store/sqlite/']],
    ['pg', ['registry/store/postgres/']],
  ])('behaviour: %s is imported in %j only', (name, places) => {
    const wrong = SOURCES.filter(({ imports }) => imports.some((specifier) => packageOf(specifier) === name))
      .map(({ file }) => file)
      .filter((file) => !places.some((place) => file === place || (place.endsWith('/') && file.startsWith(place))));
    expect(wrong).toEqual([]);
  });

  test('behaviour: a kind of store is imported by registry/store/store-kinds.ts and by itself alone', () => {
    const kindOf = (file: string): string | undefined => /^registry\/store\/([^/]+)\//.exec(file)?.[1];
    const wrong = SOURCES.filter(({ file }) => file !== 'registry/store/store-kinds.ts').flatMap(({ file, imports }) =>
      imports
        .filter((specifier) => kindOf(specifier) !== undefined && kindOf(specifier) !== kindOf(file))
        .map((specifier) => `${file} imports ${specifier}`),
    );
    expect(wrong).toEqual([]);
    const sql = SOURCES.filter(({ text }) =>
      /\b(?:SELECT|UPDATE|DELETE FROM|INSERT INTO)\b [\s\S]{0,200}?\b(?:FROM|SET|WHERE|VALUES)\b/.test(text),
    )
      .map(({ file }) => file)
      .filter((file) => kindOf(file) === undefined);
    expect(sql).toEqual([]);
  });

  test('behaviour: the settings of a store answer which kind it is, and only what makes or opens them asks', () => {
    const asking = SOURCES.filter(
      ({ file, text }) =>
        !/^registry\/store\/\w+\//.test(file) && /[=!]==? '(?:sqlite|postgres)'|case 'sqlite'/.test(text),
    );
    expect(asking.map(({ file }) => file).toSorted()).toEqual([
      'config/store.ts',
      'domain/store-settings.ts',
      'registry/store/store-kinds.ts',
    ]);
  });

  test('refuses: an import of node:http for more than its types, which would load the whole of fetch', () => {
    const wrong = SOURCES.filter(({ text }) =>
      /^(?:import(?! type\b)[^;]*|export[^;]*from\s*)'(?:node:)?http'/m.test(text),
    ).map(({ file }) => file);
    expect(wrong).toEqual([]);
  });

  test('refuses: a package in a thread of the SQLite ledger; zod would cost each of the two 2.4 MB', () => {
    const loaded = (file: string, before: Set<string>): Set<string> => {
      if (before.has(file)) return before;
      const text = SOURCES.find((source) => source.file === file)?.text ?? '';
      const imports = [...text.matchAll(/^(?:import|export)(?! type\b)[^;]*?\bfrom '([^']+)'/gm)].map(([, name = '']) =>
        name.startsWith('.') ? path.join(path.dirname(file), name) : name,
      );
      return imports.reduce((all, each) => loaded(each, all), new Set([...before, file]));
    };
    const all = [...loaded('registry/store/sqlite/charge-worker.ts', new Set())];
    expect(all).toContain('domain/payment/charge-fields.ts');
    expect(all.filter((name) => !isOurs(name) && !name.startsWith('node:'))).toEqual([]);
  });

  test('behaviour: domain reads no clock, draws no randomness and opens nothing', () => {
    const wrong = SOURCES.filter(({ folder }) => folder === 'domain').flatMap(({ file, text }) =>
      [
        ...text.matchAll(
          /Date\.now|new Date\(\)|performance\.|Math\.random|randomBytes|randomUUID|setTimeout|\bprocess\.(?:env|argv|exit|hrtime|cwd|on)\b|\bfetch\(/g,
        ),
      ].map((match) => `${file}: ${match[0]}`),
    );
    expect(wrong).toEqual([]);
  });

  test('behaviour: only the paywall and plans mint permits, and only a program ends its process', () => {
    const minting = SOURCES.filter(({ text }) => /\bmintPermit\(/.test(text)).map(({ file }) => file);
    expect(minting.toSorted()).toEqual(MINTERS);
    const exiting = SOURCES.filter(({ text }) => /\bprocess\.exit\b/.test(text)).map(({ file }) => file);
    expect(exiting.toSorted()).toEqual(['main.ts', 'worker-process.ts']);
  });
});

test('refuses: code that adds to the page for people, but what the demo is given by the program that starts it', () => {
  const naming = SOURCES.filter(({ file, text }) => !file.startsWith('compose/') && /\baroundPage\b/.test(text));
  expect(naming.map(({ file }) => file)).toEqual(['cli/demo.ts']);
});

const MINTERS = ['domain/decide.ts', 'gateway/paywall.ts', 'gateway/selling/grant.ts'];

describe('how files are written', () => {
  test('refuses: switches that only tests throw', () => {
    const wrong = SOURCES.filter(({ text }) => /TOLLGATE_TEST/.test(text)).map(({ file }) => file);
    expect(wrong).toEqual([]);
  });

  test('behaviour: every file starts with a comment of 2 to 8 lines that says what it is for', () => {
    const wrong = SOURCES.filter(({ text }) => {
      const lines = text.replace(/^#!.*\n/, '').split('\n');
      const comment = lines.findIndex((line) => !line.startsWith('//'));
      return comment < 1 || comment > 9;
    }).map(({ file }) => file);
    expect(wrong).toEqual([]);
  });

  test('refuses: enums, default exports, barrels, junk drawers', () => {
    const wrong = SOURCES.flatMap(({ file, text }) => {
      const found: string[] = [];
      if (/^\s*(export\s+)?(const\s+)?enum\s/m.test(text)) found.push('enum');
      if (/^export default/m.test(text)) found.push('default export');
      if (/^export \* from/m.test(text)) found.push('barrel');
      if (/(^|\/)(utils?|helpers?|common|misc)\.ts$/.test(file)) found.push('junk drawer');
      return found.map((what) => `${file}: ${what}`);
    });
    expect(wrong).toEqual([]);
  });
});

type Lint = {
  readonly rules: Readonly<Record<string, unknown>>;
  readonly overrides: readonly {
    readonly files: readonly string[];
    readonly rules: Readonly<Record<string, unknown>>;
  }[];
};

describe('what the linter holds', () => {
  const lint = JSON.parse(readFileSync(path.join(ROOT, '.oxlintrc.json'), 'utf8')) as Lint;
  /** What is said of `rule` for some files, in the order in which it counts. */
  const said = (rule: string): (readonly [files: readonly string[], setting: unknown])[] =>
    lint.overrides.flatMap(({ files, rules }) => (rule in rules ? [[files, rules[rule]] as const] : []));

  test('refuses: functions of more than 120 lines, and of more than 80 in http', () => {
    const [all, http, ...rest] = said('max-lines-per-function');
    expect(all).toEqual([['src/**'], ['error', { max: 120 }]]);
    expect(http).toEqual([['src/http/**'], ['error', { max: 80 }]]);
    expect(rest).toEqual([]);
  });

  test('refuses: import circles, even of types alone', () => {
    expect(lint.rules['import/no-cycle']).toEqual(['error', { ignoreTypes: false }]);
    expect(said('import/no-cycle')).toEqual([]);
  });

  test('refuses: a third file with the same name', () => {
    const names = SOURCES.map(({ file }) => path.basename(file).replace(/\.tsx?$/, ''));
    const often = new Set(names.filter((name) => names.filter((other) => other === name).length > 2));
    expect([...often]).toEqual([]);
  });

  test('refuses: an exported type whose name another one has', () => {
    const names = SOURCES.flatMap(({ text }) =>
      [...text.matchAll(/^export (?:declare |abstract )*(?:type|interface|class) ([A-Za-z0-9_]+)/gm)].map(
        (match) => match[1] ?? '',
      ),
    );
    const twice = new Set(names.filter((name, index) => names.indexOf(name) !== index));
    expect([...twice]).toEqual([]);
  });
});

test('behaviour: src/README.md is a true map of the tree (npm run map writes it)', () => {
  expect(readReadme()).toBe(renderReadme());
});

/** What a checkout has at its root, but for what git ignores and git's own. */
const AT_THE_ROOT = [
  '.ci',
  '.dockerignore',
  '.gitignore',
  '.oxfmtrc.json',
  '.oxlintrc.json',
  'CHANGELOG.md',
  'Dockerfile',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  'bench',
  'config',
  'docs',
  'package-lock.json',
  'package.json',
  'src',
  'test',
  'tsconfig.json',
];

test('refuses: anything at the root of the repository that is not on the list', () => {
  const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const names = new Set(tracked.split('\n').flatMap((file) => file.split('/')[0] || []));
  expect([...names].toSorted()).toEqual(AT_THE_ROOT);
});
