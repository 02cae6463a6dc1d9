// Holds the house against its rules: who may import whom, which file may touch what, and that src/README.md is a true
// map of the tree. A rule that only stands in a document is broken within a month.
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
  .filter((file) => file.endsWith('.ts'))
  .map((file) => {
    const text = readFileSync(path.join(SRC, file), 'utf8');
    const specifiers = [...text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] ?? '');
    const imports = specifiers.map((specifier) =>
      specifier.startsWith('.') ? path.relative(SRC, path.resolve(SRC, path.dirname(file), specifier)) : specifier,
    );
    return { file, folder: file.includes('/') ? (file.split('/')[0] ?? '') : '', text, imports };
  });

const isOurs = (specifier: string): boolean => specifier.endsWith('.ts');
const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');

/** Folder -> what of ours and which packages it may import. `main`, `compose` and `cli` may import everything. */
const MAY: Readonly<Record<string, { readonly folders: readonly string[]; readonly packages: readonly string[] }>> = {
  domain: { folders: ['domain'], packages: ['zod', 'path-to-regexp', 'lru-cache', 'node:crypto'] },
  host: { folders: ['host'], packages: ['prom-client', 'lru-cache'] },
  http: { folders: ['http'], packages: [] },
  gateway: {
    folders: ['gateway', 'domain', 'host', 'http'],
    packages: ['http-proxy-3', 'jose', 'ky', 'zod', 'lru-cache', '@noble/hashes'],
  },
  registry: { folders: ['registry', 'domain', 'host'], packages: ['jose', 'zod', 'path-to-regexp', 'lru-cache', 'pg'] },
  config: { folders: ['config', 'domain', 'host'], packages: ['yaml', 'zod'] },
  page: { folders: ['page', 'domain'], packages: [] },
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
    ['http-proxy-3', ['gateway/sync/registry-relay.ts']],
    ['jose', ['registry/auth.ts', 'gateway/rails/x402/auth.ts']],
    ['prom-client', ['host/metrics.ts']],
    ['path-to-regexp', ['domain/pattern.ts', 'registry/router.ts']],
    ['yaml', ['config/']],
    ['@noble/hashes', ['gateway/rails/evm/']],
    ['ky', ['gateway/rails/', 'gateway/sync/']],
    ['node:sqlite', ['registry/store/sqlite/']],
    ['pg', ['registry/store/postgres/']],
  ])('behaviour: %s is imported in %j only', (name, places) => {
    const wrong = SOURCES.filter(({ imports }) => imports.some((specifier) => packageOf(specifier) === name))
      .map(({ file }) => file)
      .filter((file) => !places.some((place) => file === place || (place.endsWith('/') && file.startsWith(place))));
    expect(wrong).toEqual([]);
  });

  test('behaviour: a kind of store is imported by registry/store/open.ts and by itself alone', () => {
    const kindOf = (file: string): string | undefined => /^registry\/store\/([^/]+)\//.exec(file)?.[1];
    const wrong = SOURCES.filter(({ file }) => file !== 'registry/store/open.ts').flatMap(({ file, imports }) =>
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

  test('behaviour: only the paywall mints permits, and only a program ends its process', () => {
    const minting = SOURCES.filter(({ text }) => /\bmintPermit\(/.test(text)).map(({ file }) => file);
    expect(minting.toSorted()).toEqual(MINTERS);
    const exiting = SOURCES.filter(({ text }) => /\bprocess\.exit\b/.test(text)).map(({ file }) => file);
    expect(exiting.toSorted()).toEqual(['main.ts', 'worker-process.ts']);
  });
});

test('refuses: anything around the page for people, but what the demo is given by the program that starts it', () => {
  const naming = SOURCES.filter(({ file, text }) => !file.startsWith('compose/') && /\baroundPage\b/.test(text));
  expect(naming.map(({ file }) => file)).toEqual(['cli/demo.ts']);
});

const MINTERS = ['domain/decide.ts', 'gateway/paywall.ts'];

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

  test('refuses: enums, default exports, barrels, junk drawers, files that outgrew one idea', () => {
    const wrong = SOURCES.flatMap(({ file, text }) => {
      const found: string[] = [];
      if (/^\s*(export\s+)?(const\s+)?enum\s/m.test(text)) found.push('enum');
      if (/^export default/m.test(text)) found.push('default export');
      if (/^export \* from/m.test(text)) found.push('barrel');
      if (/(^|\/)(utils?|helpers?|common|misc)\.ts$/.test(file)) found.push('junk drawer');
      if (text.split('\n').length > 400) found.push('more than 400 lines');
      return found.map((what) => `${file}: ${what}`);
    });
    expect(wrong).toEqual([]);
  });
});

/** File of less than 40 lines with one importer -> why it is a file all the same. */
const MAY_BE_SMALL: Readonly<Record<string, string>> = {
  'bundle-page.ts': 'a program of its own',
  'cli/commands.ts': 'a table',
  'cli/demo-api.ts': 'a program of its own in the image',
  'cli/openapi.ts': 'a command',
  'cli/token.ts': 'a command',
  'cli/version.ts': 'a command',
  'config/openapi.ts': 'starts the thread beside it',
  'gateway/rails/evm/family.ts': 'fills a port',
  'page/evm/words.ts': 'a table',
};

test('refuses: a file of less than 40 lines with one importer that is no port, table or command', () => {
  const small = SOURCES.filter(({ file, text }) => {
    const lines = text.split('\n').filter((line) => line.trim() !== '').length;
    return lines < 40 && SOURCES.filter(({ imports }) => imports.includes(file)).length === 1;
  });
  expect(small.map(({ file }) => file).toSorted()).toEqual(Object.keys(MAY_BE_SMALL));
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

/** Words of EVM chains, and of tokens there. */
const EVM_WORDS: Readonly<Record<string, RegExp>> = {
  address: /0x(?:\$\{|\.\.\.|[0-9a-fA-F]{20,}| and \d+ hex)|'0x'|\^0x|GLOB '0x/,
  nonce: /\bnonces?\b|nonce_|_nonce/i,
  standard: /\beip[-_]?\d|\berc-?\d|\beip712/i,
  family: /\bevm\b|exact_evm|ethereum/i,
  token: /\bUSDC\b|asset_?(?:name|version)\b|permit2/i,
  authorization: /valid_?(?:before|after)|\bchain ?id\b/i,
};
const OWN_ID = 'the part of a charge id that is drawn for each answer';
const PUBLIC_NAME = 'the public name of what is unique about a payment';
const PAY_TO_HELP = 'help shows how an address is written';
/** File and word -> why it may stand there. */
const MAY_NAME: Readonly<Record<string, string>> = {
  'cli/charges.ts address': PAY_TO_HELP,
  'cli/configuration.ts address': PAY_TO_HELP,
  'cli/demo-config.ts address': 'the demo has a chain of its own',
  'cli/demo-script.ts address': PAY_TO_HELP,
  'cli/demo-script.ts token': 'which test money the demo takes',
  'cli/networks.ts standard': 'names of the columns and members that it prints',
  'cli/next-steps.ts token': 'which test money to get for a start from flags',
  'cli/serve.ts address': PAY_TO_HELP,
  'cli/serve.ts nonce': 'what nodes are shown, in the words of people who run nodes',
  'cli/why-offline.ts nonce': OWN_ID,
  'compose/assembly.ts nonce': OWN_ID,
  'compose/proxy.ts nonce': OWN_ID,
  'config/quick.ts address': PAY_TO_HELP,
  'config/quick.ts token': 'the token that a start from flags takes',
  'config/receivers.ts standard': 'the sentence of a key of the configuration',
  'config/receivers.ts token': 'keys of the configuration, handed to the rail unread, and currencies',
  'domain/payment-required.ts nonce': OWN_ID,
  'domain/quote.ts address': 'reads a number of the quote',
  'domain/quote.ts nonce': OWN_ID,
  'domain/routing/route-fields.ts token': 'an example of a currency',
  'gateway/pay/pay.ts nonce': 'a word of facilitators',
  'gateway/rails/networks.ts family': 'the list of chain families',
  'gateway/rails/nodes.ts authorization': 'what a node is asked first',
  'gateway/rails/x402/auth.ts nonce': 'a header of CDP tokens',
  'gateway/rails/x402/reasons.ts nonce': 'a word of facilitators',
  'gateway/rails/x402/reasons.ts standard': 'a word of facilitators',
  'gateway/rails/x402/reasons.ts family': 'whose words they are',
  'gateway/rails/x402/reasons.ts authorization': 'a word of facilitators',
  'page/flow.ts family': 'the wallets that the page asks',
  'page/words.ts family': 'where words of facilitators are read',
  'registry/charge-schemas.ts nonce': PUBLIC_NAME,
  'registry/charges.ts nonce': PUBLIC_NAME,
  'registry/examples.ts address': 'examples of the OpenAPI document',
  'registry/examples.ts nonce': 'examples of the OpenAPI document',
  'registry/examples.ts standard': 'examples of the OpenAPI document',
  'registry/examples.ts token': 'examples of the OpenAPI document',
  'registry/store/sqlite/charge-rows.ts address': 'what is hexadecimal is indexed by its bytes',
};

test('refuses: a word of EVM outside rails/evm, comments included', () => {
  const named = SOURCES.filter(({ file }) => !/^(?:gateway\/rails\/(?:evm|svm)|page\/evm)\//.test(file)).flatMap(
    ({ file, text }) =>
      Object.entries(EVM_WORDS).flatMap(([word, pattern]) => (pattern.test(text) ? [`${file} ${word}`] : [])),
  );
  expect(named.toSorted()).toEqual(Object.keys(MAY_NAME).toSorted());
});

test('behaviour: src/README.md is a true map of the tree (npm run map writes it)', () => {
  expect(readReadme()).toBe(renderReadme());
});
