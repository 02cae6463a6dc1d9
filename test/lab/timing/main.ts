// `npm run test:timing`: does the time that a wrong API key takes say how near it was? In process, at the functions that
// decide, where nothing but the code makes noise. Two planted leaks must be found, or the answer is worth nothing. Exit
// code 1 where something leaks or a planted leak was missed.
import type { IncomingMessage } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { allowedMethods } from '../../../src/domain/routing/method.ts';
import { createOfflineResponses } from '../../../src/gateway/sync/relay/offline-responses.ts';
import { createRandom } from '../../../src/host/clock.ts';
import { createApiKey, createKeyCheck } from '../../../src/registry/auth/api-keys.ts';
import { openStore } from '../../../src/registry/store/sqlite/store.ts';
import { compareTimes, LIMIT_T, type Sampled } from './welch.ts';

const { values } = parseArgs({ options: { samples: { type: 'string', default: '50000' }, json: { type: 'boolean' } } });
const samples = Number(values.samples);
if (!Number.isInteger(samples) || samples < 1000 || samples > 5_000_000) {
  process.stderr.write('--samples: is not a number from 1000 to 5000000\n');
  process.exit(64);
}

/** Characters of a key before its secret. */
const PREFIX = 'tg_0123456789abcdef_'.length;

const random = createRandom();
const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-timing-'));
const store = openStore(path.join(folder, 'tollgate.db'), { random });
const create = (name: string): ReturnType<typeof createApiKey> =>
  createApiKey(store.apiKeys, { name, scopes: ['sdk'] }, { random, now: Date.now });
const stored = await Promise.all(Array.from({ length: 20 }, (_, nth) => create(`key ${nth}`)));
const { key } = stored[7] ?? { key: '' };
const revoked = await create('revoked');
await store.apiKeys.revoke(revoked.stored.id, new Date().toISOString());
const configured = `configured-${random(24).toString('base64url')}`;
const check = createKeyCheck([{ name: 'configured', key: configured, scopes: ['sdk'] }], store.apiKeys);
const offlineResponses = createOfflineResponses({
  apiKey: configured,
  lastGood: () => undefined,
  snapshot: () => undefined,
  rules: () => ({ undeclaredMethods: 'forward', methods: allowedMethods(), targetBytes: 8192 }),
  clock: { now: Date.now },
});

const POOL = 1024;
/** Inputs made beforehand and handed out as strings that have just arrived: the same work and memory for either kind. */
const arriving = (make: () => string): (() => string) => {
  const pool = Array.from({ length: POOL }, () => Buffer.from(make(), 'latin1'));
  let next = 0;
  return () => (pool[next++ % POOL] ?? Buffer.alloc(0)).toString('latin1');
};
const secretOf = (): string => random(32).toString('base64url');
const unknown = (): (() => string) => arriving(() => `tg_${random(8).toString('hex')}_${secretOf()}`);
/** As long as `whole`, the first `right` characters its own, the others random. */
const near = (whole: string, right: number, before = ''): (() => string) =>
  arriving(() => `${before}${whole.slice(0, right)}${`${secretOf()}${secretOf()}`.slice(0, whole.length - right)}`);
const ask = (header: () => string) => (): IncomingMessage =>
  ({ method: 'GET', headers: {}, headersDistinct: { authorization: [header()] } }) as never;

type Result = {
  readonly what: string;
  readonly t: number;
  readonly means: readonly number[];
  readonly kept: number;
  readonly expected: string;
  readonly right: boolean;
};
type Row = { readonly what: string; readonly leaks: boolean; readonly measure: () => Promise<Sampled> };
/** Times that a difference has to show, each time with new inputs: where these lie in memory takes up to 20 ns either way. */
const TIMES = 3;
/** The planted leaks are small beside what else they do. */
const MORE_FOR_PLANTED = 4;
const row = <T>(
  what: string,
  leaks: boolean,
  inputs: () => readonly [() => T, () => T],
  run: (input: T) => unknown,
): Row => ({
  what,
  leaks,
  measure: async () => {
    const sample = (): Promise<Sampled> => compareTimes(leaks ? samples * MORE_FOR_PLANTED : samples, inputs(), run);
    let shown = await sample();
    for (let time = 1; time < TIMES && Math.abs(shown.t) >= LIMIT_T; time++) {
      const again = await sample();
      // Once one kind was slower and once the other: neither is.
      shown = Math.sign(again.t) === Math.sign(shown.t) ? again : { ...again, t: 0 };
    }
    return shown;
  },
});

const rows: readonly Row[] = [
  row(
    'key check: unknown prefix | known prefix, wrong secret',
    false,
    () => [unknown(), near(key, PREFIX)],
    check.find,
  ),
  row(
    'key check: the whole secret wrong | its last two characters',
    false,
    () => [near(key, PREFIX), near(key, key.length - 2)],
    check.find,
  ),
  row(
    'key check: unknown prefix | prefix of a revoked key, wrong secret',
    false,
    () => [unknown(), near(revoked.key, PREFIX)],
    check.find,
  ),
  row(
    'key check, configured key: all wrong | its last two characters',
    false,
    () => [near(configured, 0), near(configured, configured.length - 2)],
    check.find,
  ),
  row(
    'sidecar’s own key: all wrong | its last two characters',
    false,
    () => [ask(near(configured, 0, 'Bearer ')), ask(near(configured, configured.length - 2, 'Bearer '))],
    (req) => offlineResponses.answer(req, '/v1/protected-routes/routes', ''),
  ),
  row(
    'planted: comparing byte by byte, the whole secret wrong | its last two characters',
    true,
    () => [near(key, PREFIX), near(key, key.length - 2)],
    (given) => equalsByByte(given, key),
  ),
  row(
    'planted: looking a key up by its prefix, unknown | known',
    true,
    () => [unknown(), near(key, PREFIX)],
    async (given) => (await store.apiKeys.list()).find(({ id }) => given.startsWith(`tg_${id}_`))?.scopes,
  ),
];

/** What nobody should write: it ends at the first difference. */
function equalsByByte(given: string, wanted: string): boolean {
  if (given.length !== wanted.length) return false;
  for (let at = 0; at < wanted.length; at++) if (given.charCodeAt(at) !== wanted.charCodeAt(at)) return false;
  return true;
}

let wrong = 0;
const results: Result[] = [];
for (const { what, leaks, measure } of rows) {
  const { t, means, kept } = await measure();
  const right = Math.abs(t) >= LIMIT_T === leaks;
  if (!right) wrong++;
  results.push({
    what,
    t: Number(t.toFixed(2)),
    means: means.map(Math.round),
    kept,
    expected: leaks ? 'leak' : 'none',
    right,
  });
}
store.close();
rmSync(folder, { recursive: true, force: true });
if (values.json) process.stdout.write(`${JSON.stringify({ samples, limit: LIMIT_T, results })}\n`);
else {
  process.stdout.write(
    `${samples} samples a row, |t| < ${LIMIT_T}, Node ${process.version}, ${availableParallelism()} cores\n\n`,
  );
  for (const { what, t, means, kept, expected, right } of results)
    process.stdout.write(
      `${right ? 'ok  ' : 'FAIL'}  t ${String(t).padStart(8)}  mean ${means.join(' | ')} ns  kept ${kept}  expected ${expected}  ${what}\n`,
    );
}
process.exitCode = wrong === 0 ? 0 : 1;
