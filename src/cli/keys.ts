// `tollgate keys create | list | revoke`: API keys in the store of the configured registry, also while it runs. A new key
// is printed alone and only once; nothing can show it again.
import type { Config } from '../config/config.ts';
import { suggest } from '../domain/suggest.ts';
import { oneOf } from '../config/fields.ts';
import { createRandom } from '../host/clock.ts';
import { storeAt } from '../registry/store/store-kinds.ts';
import { SCOPES, type Scope } from '../domain/scope.ts';
import type { Store, StoredKey } from '../registry/store/ports.ts';
import type { Args } from './args.ts';
import { commandCause } from './command-cause.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { CONFIG_FLAG, loadWithSecrets, registryOf, talk } from './configuration.ts';
import { messageOf } from '../host/error-message.ts';
import { tableOf } from './table.ts';

const ACTIONS = ['create', 'list', 'revoke'] as const;

export const keys: Command = {
  name: 'keys',
  summary: 'create, list or revoke API keys',
  usage: [
    'tollgate keys create --name NAME [--scope sdk,ledger]   prints the key alone; it cannot be shown again',
    'tollgate keys list [--json]',
    'tollgate keys revoke ID',
  ],
  examples: [
    'tollgate keys create --name production-eu --scope sdk,ledger',
    'tollgate keys list',
    'tollgate keys revoke 4f1d2c3b4a596877',
  ],
  actions: ACTIONS,
  flags: {
    ...CONFIG_FLAG,
    name: { value: 'NAME', help: 'create: what the key is for' },
    scope: {
      value: 'sdk,ledger',
      choices: ['sdk', 'ledger', 'sdk,ledger'],
      help: 'create: what it may do (sdk if left out)',
    },
    json: { help: 'list: print an array' },
  },
  words: { min: 1, max: 2 },
  run: runKeys,
};

async function runKeys(args: Args, io: Io): Promise<ExitCode> {
  const [action = '', id, ...rest] = args.words;
  const wrong = findMistakes(action, id, rest, args);
  if (wrong.length > 0) {
    for (const line of wrong) io.err(line);
    return EXIT.usage;
  }
  const loaded = await loadWithSecrets(args, io);
  if (!loaded.ok) return loaded.code;
  const registry = registryOf(loaded.config, io);
  if (!registry) return EXIT.usage;
  const place = await storeAt(registry.store);
  let store: Store;
  try {
    store = await place.open({ random: createRandom(), now: Date.now, log: talk(io), as: 'command' });
  } catch (error) {
    io.err(messageOf(error));
    return EXIT.away;
  }
  try {
    if (action === 'create') return await create(store, args, io);
    if (action === 'list') return await list(store, loaded.config, args, io);
    return await revoke(store, id ?? '', loaded.config, io);
  } catch (error) {
    io.err(messageOf(error));
    return EXIT.away;
  } finally {
    await store.close();
  }
}

function findMistakes(action: string, id: string | undefined, rest: readonly string[], args: Args): string[] {
  if (!ACTIONS.some((known) => known === action)) {
    const meant = suggest(action, ACTIONS);
    return [`keys: is followed by ${oneOf(ACTIONS)}${meant === undefined ? '' : `; did you mean ${meant}?`}`];
  }
  const mistakes: string[] = [];
  if (action === 'revoke' ? rest.length > 0 : id !== undefined) mistakes.push(`keys ${action}: has a word too many`);
  if (action === 'revoke' && id === undefined)
    mistakes.push('keys revoke: needs the id of a key; `tollgate keys list` shows them');
  if (action === 'create') {
    const name = args.text('name');
    if (name === undefined) mistakes.push('--name: is missing; say what the key is for');
    else if (!/^[\x20-\x7e]{1,64}$/.test(name)) mistakes.push('--name: is not 1 to 64 visible ASCII characters');
    if (readScopes(args) === undefined) mistakes.push(`--scope: is not a list of ${oneOf(SCOPES)}, such as sdk,ledger`);
  } else if (args.has('name') || args.has('scope')) mistakes.push(`keys ${action}: takes neither --name nor --scope`);
  if (action !== 'list' && args.has('json')) mistakes.push('--json: is for keys list');
  return mistakes;
}

function readScopes(args: Args): readonly Scope[] | undefined {
  const names = (args.text('scope') ?? 'sdk').split(',').map((name) => name.trim());
  const scopes = SCOPES.filter((scope) => names.includes(scope));
  return scopes.length === new Set(names).size ? scopes : undefined;
}

async function create({ apiKeys }: Store, args: Args, io: Io): Promise<ExitCode> {
  const { createApiKey } = await import('../registry/auth/api-keys.ts');
  const { TOKEN_SUBJECT } = await import('../registry/auth/dashboard-tokens.ts');
  const wanted = { name: args.text('name') ?? '', scopes: readScopes(args) ?? [] };
  const by = { by: TOKEN_SUBJECT, cause: commandCause() };
  const made = await createApiKey(apiKeys, { ...wanted, ...by }, { random: createRandom(), now: Date.now });
  io.out(made.key);
  return EXIT.fine;
}

/** Keys of the configuration are listed too: they work, but only the file can take them away. */
async function list(store: Store, config: Config, args: Args, io: Io): Promise<ExitCode> {
  const stored = (await store.apiKeys.list()).map((key) => Object.assign(key, { where: 'store' }));
  const configured = (config.registry?.apiKeys ?? []).map(({ name, scopes }) => ({
    id: null,
    name,
    scopes,
    createdAt: null,
    createdBy: null,
    revokedAt: null,
    where: 'configuration',
  }));
  const all = [...configured, ...stored];
  if (args.has('json')) {
    io.out(
      JSON.stringify(
        all.map(({ createdAt, createdBy, revokedAt, ...key }) => ({
          ...key,
          ...{ created_at: createdAt, created_by: createdBy, revoked_at: revokedAt },
        })),
      ),
    );
    return EXIT.fine;
  }
  const rows = all.map((key) => [
    key.id ?? '-',
    stateOf(key),
    key.scopes.join(','),
    key.createdAt ?? key.where,
    key.name,
  ]);
  if (rows.length === 0) io.err('no keys');
  else for (const line of tableOf(['ID', 'STATE', 'SCOPES', 'MADE', 'NAME'], rows)) io.out(line);
  return EXIT.fine;
}

function stateOf({ revokedAt }: Pick<StoredKey, 'revokedAt'>): string {
  return revokedAt === null ? 'active' : 'revoked';
}

async function revoke(store: Store, id: string, config: Config, io: Io): Promise<ExitCode> {
  const outcome = await store.apiKeys.revoke(id, new Date().toISOString(), commandCause());
  switch (outcome) {
    case 'revoked':
    case 'already_revoked':
      io.err(outcome === 'revoked' ? 'revoked' : 'was revoked before');
      return EXIT.fine;
    case 'unknown': {
      const configured = config.registry?.apiKeys.some(({ name }) => name === id);
      io.err(
        configured
          ? 'this key comes from the configuration, or from secrets.json if it names none; take it out there'
          : 'no key has this id; `tollgate keys list` shows them',
      );
      return EXIT.no;
    }
    default:
      return outcome satisfies never;
  }
}
