// The `registry.desk` section: where the desk is on by itself, what has to be said before it is, and every way to write it
// wrongly.
import { describe, expect, test } from 'vitest';
import { deskOf } from '../../src/config/desk.ts';
import { configOf, problemsOf } from './support.ts';

const desk = (lines: string, listen = '127.0.0.1:8403'): string =>
  `registry:\n  listen: "${listen}"\n  desk: { ${lines} }\n`;
const provider = (lines: string): string => desk(`public_url: "https://d.example", oidc: { ${lines} }`);
const OIDC = 'issuer: https://id.example, client_id: tollgate, admins: [a@b.example]';

describe('where the desk is on', () => {
  const inForce = (yaml: string): ReturnType<typeof deskOf> => {
    const { registry } = configOf(yaml);
    return registry === undefined ? undefined : deskOf(registry);
  };

  test('behaviour: left out, the desk takes one-time links on loopback and private listeners, and is off on all others', () => {
    for (const listen of ['127.0.0.1:8403', 'localhost:1', '[::1]:1', '10.0.0.7:8403', '[fd00::1]:1'])
      expect([listen, inForce(`registry: { listen: "${listen}" }\n`)]).toMatchObject([
        listen,
        { signIn: ['link'], session: { idleMs: 28_800_000, maxMs: 86_400_000 }, oidc: undefined },
      ]);
    for (const listen of ['0.0.0.0:8403', '[::]:8403', '8.8.8.8:8403', 'registry.internal:8403'])
      expect([listen, inForce(`registry: { listen: "${listen}" }\n`)]).toEqual([listen, undefined]);
  });

  test('behaviour: a desk of false serves nothing, an empty section takes links and tokens', () => {
    expect(inForce('registry: { desk: false }\n')).toBeUndefined();
    expect(inForce('registry: { listen: "0.0.0.0:1", desk: false }\n')).toBeUndefined();
    expect(inForce('registry: { desk: {} }\n')?.signIn).toEqual(['link', 'token']);
    const all = inForce(desk('public_url: "https://desk.example"', '0.0.0.0:1'));
    expect(all).toMatchObject({ signIn: ['link', 'token'], publicUrl: 'https://desk.example' });
    expect(inForce(provider(`${OIDC}, client_secret: s, viewers: ["*@b.example", "Platform Team"]`))).toMatchObject({
      signIn: ['link', 'token', 'oidc'],
      oidc: {
        ...{ issuer: 'https://id.example', clientId: 'tollgate', clientSecret: 's', claim: 'email' },
        ...{ scopes: ['openid', 'email'], admins: ['a@b.example'], viewers: ['*@b.example', 'Platform Team'] },
      },
    });
    for (const issuer of [
      'http://127.0.0.1:9',
      'http://localhost:9/realms/a',
      'http://[::1]:9',
      'https://i.example/a/',
    ])
      expect(inForce(provider(`issuer: "${issuer}", client_id: a, admins: [b]`))?.oidc?.issuer).toBe(issuer);
    expect(inForce(desk('sign_in: [token], session: { idle: 30m, max: 2h }'))).toMatchObject({
      signIn: ['token'],
      session: { idleMs: 1_800_000, maxMs: 7_200_000 },
    });
  });
});

describe('refuses, saying where and what would be right', () => {
  test.each([
    ['text in its place', 'registry:\n  desk: yes please\n', 'registry.desk', 'write a section, or false'],
    ['true', 'registry:\n  desk: true\n', 'registry.desk', 'write a section, or false'],
    ['an unknown key', desk('public: x'), 'registry.desk.public', 'public_url'],
    ['a public_url with a path', desk('public_url: "https://a.example/x"'), 'registry.desk.public_url', 'the origin'],
    ['a public_url with a slash', desk('public_url: "https://a.example/"'), 'registry.desk.public_url', 'the origin'],
    ['a way that is none', desk('sign_in: [password]'), 'registry.desk.sign_in[0]', 'link, token or oidc'],
    ['oidc without its section', desk('sign_in: [oidc]'), 'registry.desk.sign_in', 'add oidc'],
    ['oidc without public_url', desk(`oidc: { ${OIDC} }`), 'registry.desk.public_url', 'sends people back'],
    ['oidc as a way alone', desk('sign_in: [oidc]'), 'registry.desk.public_url', 'sends people back'],
    ['no issuer', provider('client_id: a, admins: [b@c.d]'), 'registry.desk.oidc.issuer', 'is missing'],
    [
      'no client_id',
      provider('issuer: https://i.example, admins: [b@c.d]'),
      'registry.desk.oidc.client_id',
      'is missing',
    ],
    ['an empty secret', provider(`${OIDC}, client_secret: ""`), 'registry.desk.oidc.client_secret', 'the secret of'],
    [
      'a secret that is a number',
      provider(`${OIDC}, client_secret: 12`),
      'registry.desk.oidc.client_secret',
      'quote it',
    ],
    ['an empty claim', provider(`${OIDC}, claim: ""`), 'registry.desk.oidc.claim', 'the name of a claim'],
    ['a scope with a space', provider(`${OIDC}, scopes: [openid, "a b"]`), 'registry.desk.oidc.scopes[1]', 'a scope'],
    [
      'people who are no list',
      provider('issuer: https://i.example, client_id: a, admins: b@c.d'),
      'registry.desk.oidc.admins',
      'list',
    ],
    [
      'a pattern within a name',
      provider(`${OIDC}, viewers: ["a*@b.c"]`),
      'registry.desk.oidc.viewers[0]',
      'whole domain',
    ],
    ['a key that is none', provider(`${OIDC}, secret: x`), 'registry.desk.oidc.secret', ''],
    [
      'the address of a document in place of the issuer',
      provider('issuer: "https://i.example/.well-known/openid-configuration", client_id: a, admins: [b@c.d]'),
      'registry.desk.oidc.issuer',
      'without /.well-known',
    ],
    [
      'an issuer with a query',
      provider('issuer: "https://i.example/?a=b", client_id: a, admins: [b@c.d]'),
      'registry.desk.oidc.issuer',
      'https URL of the issuer',
    ],
    ['a public listener without public_url', desk('', '0.0.0.0:8403'), 'registry.desk.public_url', 'neither loopback'],
    [
      'a plain http issuer',
      desk('public_url: "https://d.example", oidc: { issuer: http://id.example, client_id: a, admins: [b@c.d] }'),
      'registry.desk.oidc.issuer',
      'https URL of the issuer',
    ],
    [
      'nobody who may come in',
      desk('public_url: "https://d.example", oidc: { issuer: https://id.example, client_id: a }'),
      'registry.desk.oidc',
      'names nobody',
    ],
    [
      'a pattern that is none',
      desk('public_url: "https://d.example", oidc: { issuer: https://i.example, client_id: a, admins: ["*"] }'),
      'registry.desk.oidc.admins[0]',
      '*@example.com',
    ],
    [
      'scopes without openid',
      desk(`public_url: "https://d.example", oidc: { ${OIDC}, scopes: [email] }`),
      'registry.desk.oidc.scopes',
      'lacks openid',
    ],
    ['a session of seconds', desk('session: { idle: 10s }'), 'registry.desk.session.idle', '1m'],
  ])('refuses: %s in the section desk', (_, yaml, at, message) => {
    const problem = problemsOf(yaml).find((line) => line.includes(` ${at}: `));
    expect(problem, problemsOf(yaml).join('\n')).toBeDefined();
    expect(
      problemsOf(yaml)
        .filter((line) => line.includes(` ${at}: `))
        .join('\n'),
    ).toContain(message);
  });
});
