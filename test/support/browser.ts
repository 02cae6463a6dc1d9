// A real browser, out of the lock file: Chromium with its libraries and a font, unpacked once for this machine, started with
// flags of ours and a font configuration of ours alone, so that it needs nothing that is installed here. The page is watched:
// what its policy refuses, what it throws and what it complains of fails a test.
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import axe from 'axe-core';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core';

const require = createRequire(import.meta.url);
const PACKAGE = path.dirname(path.dirname(require.resolve('@sparticuz/chromium')));
const { version } = require(path.join(PACKAGE, 'package.json')) as { readonly version: string };

/** Patience with a page on a busy machine: less than the time of a test, so that what it waits for is named. */
const PATIENCE_MS = 30_000;

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

export type TestBrowser = {
  readonly open: (
    options?: BrowserContextOptions,
    prepare?: (context: BrowserContext) => Promise<void>,
  ) => Promise<WatchedPage>;
  readonly close: () => Promise<void>;
};

export type WatchedPage = {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What went wrong so far: refusals of the policy, errors thrown, complaints on the console. A test takes out what it expects. */
  readonly complaints: string[];
  /** What axe finds on the page as it stands. */
  readonly barriers: () => Promise<readonly string[]>;
};

export async function startBrowser(): Promise<TestBrowser> {
  const folder = await unpack();
  const browser = await chromium.launch({
    executablePath: path.join(folder, 'chromium'),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--disable-background-networking',
      '--disable-component-update',
    ],
    env: {
      HOME: folder,
      PATH: process.env['PATH'] ?? '',
      LD_LIBRARY_PATH: path.join(folder, 'al2023/lib'),
      FONTCONFIG_FILE: path.join(folder, 'fonts.conf'),
    },
  });
  return { open: (options, prepare) => open(browser, options, prepare), close: () => browser.close() };
}

async function open(
  browser: Browser,
  options: BrowserContextOptions = {},
  prepare?: (context: BrowserContext) => Promise<void>,
): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  const complaints: string[] = [];
  await context.exposeFunction('complainToTest', (text: string) => void complaints.push(text));
  await context.addInitScript({
    content:
      "addEventListener('securitypolicyviolation', (event) => complainToTest(`policy: ${event.violatedDirective} ${event.blockedURI}`))",
  });
  await prepare?.(context);
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  page.on('pageerror', (error) => complaints.push(`thrown: ${error.message}`));
  page.on('console', (message) => {
    // The browser's own line about every status from 400 on, and about a connection that a test cuts.
    if (
      message.type() === 'error' &&
      !/^Failed to load resource: (?:the server responded|net::ERR_)/.test(message.text())
    )
      complaints.push(`console: ${message.text()}`);
  });
  return {
    ...{ page, context, complaints },
    barriers: async () => {
      await page.evaluate(axe.source);
      const run = `axe.run(document, ${JSON.stringify({ runOnly: RULES, resultTypes: ['violations'], preload: false })})`;
      const { violations } = await page.evaluate<axe.AxeResults>(run);
      return violations.flatMap(({ id, nodes }) =>
        nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
      );
    },
  };
}

/** Complete or not there: several test files may want it at once. */
async function unpack(): Promise<string> {
  const folder = path.join(tmpdir(), `tollgate-chromium-${version}`);
  if (existsSync(folder)) return folder;
  const own = mkdtempSync(path.join(tmpdir(), 'tollgate-chromium-'));
  // The package unpacks into the folder for temporary files: that of a process of its own.
  const unpacking = `import { inflate } from '@sparticuz/chromium'; await Promise.all(process.argv.slice(1).map((part) => inflate(part)));`;
  const parts = ['chromium.br', 'fonts.tar.br', 'al2023.tar.br'].map((part) => path.join(PACKAGE, 'bin', part));
  await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', unpacking, '--', ...parts], {
    cwd: import.meta.dirname,
    env: { ...process.env, TMPDIR: own },
  });
  mkdirSync(path.join(own, 'cache'));
  writeFileSync(
    path.join(own, 'fonts.conf'),
    `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${folder}/fonts/fonts</dir><cachedir>${folder}/cache</cachedir></fontconfig>`,
  );
  try {
    renameSync(own, folder);
  } catch (error) {
    rmSync(own, { recursive: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}
