// The `webhooks` section: its defaults, secrets side by side, and a sentence for every way to write it wrongly.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { typesOf } from '../../src/domain/webhooks/event-types.ts';
import { temporaryFolder } from '../registry/kit.ts';
import { configOf, problemsOf, SECRET as CHARGE_SECRET } from './support.ts';

const secretOf = (bytes: number): string => `whsec_${Buffer.alloc(bytes, 3).toString('base64')}`;
const SECRET = secretOf(32);
const endpoint = (more: string): string => `registry: {}\nwebhooks:\n  - { ${more} }\n`;
const good = (more = ''): string =>
  endpoint(`id: books, url: "https://hooks.example.com/in?a=b", secret: ${SECRET}${more}`);

test('behaviour: an endpoint gets every type but charge.claimed within 15 s, and one secret is a list of one', () => {
  const [books] = configOf(good()).webhooks;
  expect(books).toEqual({
    ...{ id: 'books', url: 'https://hooks.example.com/in?a=b', secrets: [SECRET], events: ['*'] },
    ...{ timeoutMs: 15_000, allowPrivate: false },
  });
  const all = typesOf(books?.events ?? []);
  expect([all.length, all.includes('charge.claimed')]).toEqual([11, false]);
  expect(typesOf(['*', 'charge.claimed'])).toContain('charge.claimed');
  expect(typesOf(['charge.settled'])).toEqual(['charge.settled']);
});

test('behaviour: up to three secrets stand in a list or in a file, one a line', () => {
  const { folder, remove } = temporaryFolder();
  const three = [24, 32, 64].map(secretOf);
  writeFileSync(join(folder, 'secrets'), `${three.join('\n')}\n`);
  const byFile = `registry: {}\nwebhooks: [{ id: a, url: "https://a.example", secret_file: secrets }]\n`;
  expect(configOf(byFile, {}, join(folder, 't.yaml')).webhooks[0]?.secrets).toEqual(three);
  expect(configOf(good().replace(SECRET, `[${three.join(', ')}]`)).webhooks[0]?.secrets).toEqual(three);
  remove();
});

test('behaviour: allow_private lifts https and public addresses; a sidecar with charges of its own may have webhooks', () => {
  for (const url of ['http://127.0.0.1:1/', 'http://hooks.internal/', 'https://10.0.0.1/', 'http://localhost:9/'])
    expect(problemsOf(endpoint(`id: a, url: "${url}", secret: ${SECRET}, allow_private: true`))).toEqual([]);
  const sidecar = (store: string): string =>
    `proxy: { upstream: "http://127.0.0.1:1" }\nsync: { registry_url: "https://r.example", api_key: key-of-sixteen-c }\ncharges: { secrets: [${CHARGE_SECRET}]${store} }\n${good().slice('registry: {}\n'.length)}`;
  expect(problemsOf(sidecar(', store: "sqlite:own.db"'))).toEqual([]);
  expect(problemsOf(sidecar(''))).toEqual([
    expect.stringContaining('webhooks: stands in a sidecar whose registry keeps the charges'),
  ]);
});

test.each([
  ['plain http', endpoint(`id: a, url: "http://hooks.example.com/", secret: ${SECRET}`), 'is plain http; write https'],
  ['loopback', endpoint(`id: a, url: "https://localhost/", secret: ${SECRET}`), 'is no public address'],
  [
    'a private address',
    endpoint(`id: a, url: "https://[::ffff:10.0.0.1]/", secret: ${SECRET}`),
    'is no public address',
  ],
  [
    'an address in another spelling',
    endpoint(`id: a, url: "https://0x7f.1/", secret: ${SECRET}`),
    'is no public address',
  ],
  [
    'a user',
    endpoint(`id: a, url: "https://u:p@hooks.example.com/", secret: ${SECRET}`),
    'is not an https URL without user',
  ],
  [
    'a fragment',
    endpoint(`id: a, url: "https://hooks.example.com/#a", secret: ${SECRET}`),
    'is not an https URL without user',
  ],
  [
    'another scheme',
    endpoint(`id: a, url: "ftp://hooks.example.com/", secret: ${SECRET}`),
    'is not an https URL without user',
  ],
  ['no secret', endpoint('id: a, url: "https://hooks.example.com/"'), 'secret: is missing; write whsec_'],
  ['a secret of 23 bytes', good().replace(SECRET, secretOf(23)), 'is not whsec_ and the base64 of 24 to 64'],
  ['a secret of 65 bytes', good().replace(SECRET, secretOf(65)), 'is not whsec_ and the base64 of 24 to 64'],
  ['a secret without its prefix', good().replace('whsec_', ''), 'is not whsec_ and the base64 of 24 to 64'],
  ['four secrets', good().replace(SECRET, `[${Array(4).fill(SECRET).join(', ')}]`), 'has more than 3 secrets'],
  ['an event that there is not', good(', events: [charge.paid]'), 'write *, charge.claimed, charge.settled'],
  ['no events', good(', events: []'), 'events: is empty'],
  ['a time-out of a minute', good(', timeout: 60s'), 'timeout: is out of range; write 1s to 30s'],
  [
    'one id twice',
    `${good()}  - { id: books, url: "https://b.example", secret: ${SECRET} }\n`,
    'is the id of an earlier endpoint',
  ],
  [
    '21 endpoints',
    `registry: {}\nwebhooks:\n${Array.from({ length: 21 }, (_, n) => `  - { id: e${n}, url: "https://b.example", secret: ${SECRET} }\n`).join('')}`,
    'has more than 20 endpoints',
  ],
])('refuses: an endpoint with %s, in a sentence without its secret', (_what, text, sentence) => {
  const problems = problemsOf(text);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(sentence);
  expect(problems[0]).not.toMatch(/whsec_[A-Za-z0-9+/]{10}/);
});
