// An independent OpenID provider (oidc-provider) on loopback with people of its own, that a test can make fail at each step:
// away, slow, or with another ID token than the one it would send, signed by its own key. And somebody who signs in there
// without a browser, by its forms.
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeJwt, exportJWK, generateKeyPair, SignJWT, type JWTPayload } from 'jose';
import { keepSecret } from './canaries.ts';

export const CLIENT_SECRET = 'client-secret-of-the-desk-0123456789';
keepSecret('CLIENT_SECRET', CLIENT_SECRET);

/** Logins at the provider, and what it says about each. */
const PEOPLE: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  ann: { email: 'ann@example.com', email_verified: true, groups: ['staff', 'ops'] },
  bob: { email: 'bob@example.com', email_verified: true, groups: ['staff'] },
  eve: { email: 'ann@example.com', email_verified: false, groups: [] },
  sam: { email: 'ann@example.com', email_verified: 'true', groups: 'ops' },
  mia: { email: 'mia@elsewhere.example', email_verified: true, groups: ['guests'] },
};

type Forgery = (claims: JWTPayload, sign: (claims: JWTPayload) => Promise<string>) => Promise<string>;

export type OpenIdProvider = {
  readonly issuer: string;
  /** How it answers from now on: `away` cuts the connection of paths that begin so, `slow` leaves them unanswered. */
  readonly mood: {
    away: string | undefined;
    slow: string | undefined;
    /** Makes the ID token of the next answers of the token endpoint. */
    forge: Forgery | undefined;
    /** Replaces members of the discovery document. */
    published: Readonly<Record<string, unknown>>;
  };
  /** Every token that left it. */
  readonly tokens: readonly string[];
  /** Calls, as `METHOD /path`. */
  readonly calls: readonly string[];
  readonly close: () => Promise<void>;
};

type Options = {
  /** Where people are sent back. */
  readonly redirectUris: readonly string[];
  readonly clientAuth?: 'client_secret_basic' | 'client_secret_post' | 'none';
  /** Refuses a client that proves itself by a header, as providers do that let it prove itself by a form alone. */
  readonly refusesBasic?: true;
  /** Claims come from the user-info endpoint alone, as OpenID Connect has it. */
  readonly thinTokens?: boolean;
  /** The name under which it is reached. */
  readonly host?: string;
};

export async function startOpenId({
  redirectUris,
  clientAuth = 'client_secret_basic',
  thinTokens = false,
  refusesBasic,
  host = 'localhost',
}: Options): Promise<OpenIdProvider> {
  const keys = await generateKeyPair('RS256', { extractable: true });
  const jwk = { ...(await exportJWK(keys.privateKey)), kid: 'first', alg: 'RS256', use: 'sig' };
  const mood: OpenIdProvider['mood'] = { away: undefined, slow: undefined, forge: undefined, published: {} };
  const tokens: string[] = [];
  const calls: string[] = [];
  let handle: (req: IncomingMessage, res: ServerResponse) => void;
  const server = createServer((req, res) => {
    const { url = '', method } = req;
    calls.push(`${method} ${url.split('?', 1)[0]}`);
    if (mood.away !== undefined && url.startsWith(mood.away)) return void req.socket.destroy();
    if (mood.slow !== undefined && url.startsWith(mood.slow)) return undefined;
    if (refusesBasic && url === '/token' && req.headers.authorization !== undefined) {
      const body = JSON.stringify({ error: 'invalid_client' });
      return void res.writeHead(401, { 'Content-Type': 'application/json' }).end(body);
    }
    if (url.startsWith('/token')) rewrite(res, async (body) => (await forge(body)) ?? body);
    if (url.startsWith('/.well-known/')) rewrite(res, (body) => Promise.resolve({ ...body, ...mood.published }));
    return handle(req, res);
  });
  const forge = async (body: Record<string, unknown>): Promise<Record<string, unknown> | undefined> => {
    const { id_token: idToken, access_token: accessToken } = body;
    if (typeof accessToken === 'string') tokens.push(accessToken);
    if (typeof idToken !== 'string') return undefined;
    const sign = (claims: JWTPayload): Promise<string> =>
      new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'first' }).sign(keys.privateKey);
    const sent = mood.forge === undefined ? idToken : await mood.forge(decodeJwt(idToken), sign);
    tokens.push(sent);
    return { ...body, id_token: sent };
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://${host}:${(server.address() as AddressInfo).port}`;
  const quiet = silence();
  const { default: Provider } = await import('oidc-provider');
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'tollgate',
        ...(clientAuth === 'none' ? {} : { client_secret: CLIENT_SECRET }),
        token_endpoint_auth_method: clientAuth,
        redirect_uris: redirectUris,
        response_types: ['code'],
        grant_types: ['authorization_code'],
      },
    ],
    jwks: { keys: [jwk] },
    cookies: { keys: ['a key of the provider for its cookies'] },
    pkce: { required: () => true },
    ttl: { Interaction: 600, Session: 600, Grant: 600, AuthorizationCode: 60, AccessToken: 600, IdToken: 600 },
    claims: { email: ['email', 'email_verified'], groups: ['groups'] },
    conformIdTokenClaims: thinTokens,
    features: { devInteractions: { enabled: true }, userinfo: { enabled: true } },
    findAccount: (_: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, ...PEOPLE[id] }),
    }),
  });
  quiet();
  handle = provider.callback();
  return {
    ...{ issuer, mood, tokens, calls },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Replaces the JSON that is about to be sent. */
function rewrite(res: ServerResponse, change: (body: Record<string, unknown>) => Promise<object>): void {
  const end = res.end.bind(res);
  res.end = ((text?: string | Buffer) => {
    const given = text?.toString() ?? '';
    const isJson = String(res.getHeader('content-type')).startsWith('application/json');
    if (!isJson || given === '') return end(text);
    void change(JSON.parse(given) as Record<string, unknown>).then((body) => {
      const changed = JSON.stringify(body);
      res.setHeader('content-length', Buffer.byteLength(changed));
      end(changed);
    });
    return res;
  }) as typeof res.end;
}

/** The provider says on the console that it is set up for development, which it is. */
function silence(): () => void {
  const { warn, info } = console;
  Object.assign(console, { warn: () => undefined, info: () => undefined });
  return () => void Object.assign(console, { warn, info });
}

export type Visit = {
  readonly status: number;
  readonly location: string | undefined;
  readonly setCookies: readonly string[];
  readonly body: string;
};

/** One request as a browser sends it when somebody goes to `url`; `host` where the name is not resolved. */
export function visit(
  url: string,
  {
    method = 'GET',
    headers = {},
    form,
  }: { method?: string; headers?: Record<string, string>; form?: Record<string, string> } = {},
): Promise<Visit> {
  const { hostname, port, pathname, search, host } = new URL(url);
  const body = form && new URLSearchParams(form).toString();
  const given = {
    Host: host,
    ...(body === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' }),
    ...headers,
  };
  return new Promise((resolve, reject) => {
    const req = request(
      {
        host: hostname.endsWith('localhost') ? '127.0.0.1' : hostname,
        port,
        method,
        path: pathname + search,
        headers: given,
        agent: false,
      },
      (res) => {
        let text = '';
        res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        res.on('error', reject);
        res.on('end', () =>
          resolve({
            status: res.statusCode ?? 0,
            location: res.headers.location,
            setCookies: res.headers['set-cookie'] ?? [],
            body: text,
          }),
        );
      },
    );
    req.on('error', reject);
    req.end(body);
  });
}

/** Goes from the provider's authorization endpoint to where it sends `login` back. With `refuses`, the person cancels. */
export async function signInAt(
  { issuer }: Pick<OpenIdProvider, 'issuer'>,
  authorizeUrl: string,
  login: string,
  refuses = false,
): Promise<string> {
  const jar = new Map<string, string>();
  let at = new URL(authorizeUrl);
  let form: Record<string, string> | undefined;
  for (let step = 0; step < 20; step++) {
    if (at.origin !== issuer) return at.href;
    const Cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const given = form === undefined ? { headers: { Cookie } } : { method: 'POST', headers: { Cookie }, form };
    const reply = await visit(at.href, given);
    form = undefined;
    for (const cookie of reply.setCookies) {
      const [pair = ''] = cookie.split(';', 1);
      const [name = '', ...rest] = pair.split('=');
      if (/expires=Thu, 01 Jan 1970/i.test(cookie)) jar.delete(name);
      else jar.set(name, rest.join('='));
    }
    if (reply.location !== undefined) at = new URL(reply.location, at);
    else {
      const [, action] = /<form[^>]* action="([^"]+)"/.exec(reply.body) ?? [];
      const [, abort] = /<a href="([^"]+)">\[ Cancel \]/.exec(reply.body) ?? [];
      if (action === undefined) throw new Error(`the provider answered ${reply.status}: ${reply.body.slice(0, 500)}`);
      if (refuses && abort !== undefined) at = new URL(abort, at);
      else {
        at = new URL(action, at);
        form = reply.body.includes('value="login"')
          ? { prompt: 'login', login, password: 'any' }
          : { prompt: 'consent' };
      }
    }
  }
  throw new Error('the provider leads in a circle');
}
