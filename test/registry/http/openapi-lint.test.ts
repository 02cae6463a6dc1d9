// The OpenAPI document before a linter that is not ours: Redocly's, with the rules that it recommends, and no finding at all.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { API } from '../../../src/registry/api.ts';
import { describeApi } from '../../../src/registry/http/openapi-document.ts';
import { temporaryFolder } from '../kit.ts';

const REDOCLY = path.resolve(import.meta.dirname, '../../../node_modules/@redocly/cli/bin/cli.js');
const QUIET = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' };

const { folder, remove } = temporaryFolder();
afterAll(remove);

type Finding = { readonly ruleId: string; readonly severity: string; readonly message: string; readonly at: string };

/** What the linter finds in a document, a sentence each. */
async function lint(document: object): Promise<string[]> {
  const file = path.join(folder, 'openapi.json');
  writeFileSync(file, JSON.stringify(document));
  const argv = [REDOCLY, 'lint', '--extends', 'recommended', '--format', 'json', '--max-problems', '50', file];
  const told = await new Promise<string>((resolve) => {
    execFile(process.execPath, argv, { cwd: folder, env: { ...process.env, ...QUIET } }, (_, stdout) =>
      resolve(stdout),
    );
  });
  const { problems } = JSON.parse(told) as {
    problems: (Finding & { location: { pointer: string }[] })[];
  };
  return problems.map(
    ({ ruleId, severity, message, location }) => `${severity} ${ruleId} at ${location[0]?.pointer}: ${message}`,
  );
}

test('behaviour: a linter of OpenAPI documents finds nothing to say, under an origin and without one', async () => {
  expect(await lint(describeApi(API, '0.1.0'))).toEqual([]);
  expect(await lint(describeApi(API, '0.1.0', 'http://127.0.0.1:8403'))).toEqual([]);
});

test('behaviour: the linter finds what is taken out of the document, so that its silence says something', async () => {
  const document = describeApi(API, '0.1.0');
  const { servers: _servers, ...without } = document;
  expect(await lint(without)).toEqual([expect.stringContaining('no-empty-servers')]);
});
