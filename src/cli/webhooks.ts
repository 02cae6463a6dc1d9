// `tollgate webhooks list | test | enable | retry`: the endpoints of the configuration and what became of their events, from the
// store that keeps the charges, also while Tollgate runs, which sends what these commands ask for within a second.
import { oneOf } from '../config/fields.ts';
import { suggest } from '../domain/suggest.ts';
import { messageOf } from '../host/error-message.ts';
import type { ChargesStore } from '../registry/store/ports.ts';
import { storeAt } from '../registry/store/store-kinds.ts';
import { createWebhooks, type Webhooks } from '../registry/webhooks/webhook-standings.ts';
import type { Args } from './args.ts';
import { commandCause } from './command-cause.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { CONFIG_FLAG, loadFor, talk } from './configuration.ts';
import { tableOf } from './table.ts';

const ACTIONS = ['list', 'test', 'enable', 'retry'] as const;
/** Words that follow each action. */
const WORDS: Readonly<Record<(typeof ACTIONS)[number], readonly string[]>> = {
  list: [],
  test: ['ID'],
  enable: ['ID'],
  retry: ['ID', 'EVENT'],
};

export const webhooks: Command = {
  name: 'webhooks',
  summary: 'list webhooks, test or enable one, or send an event again',
  usage: [
    'tollgate webhooks list [--json]',
    'tollgate webhooks test ID           sends a test event; prints its id',
    'tollgate webhooks enable ID         sends to a disabled endpoint again, all that waits at once',
    'tollgate webhooks retry ID EVENT    sends one event again, as long as it is kept',
    '',
    'Endpoints stand in the configuration, under `webhooks`. The running Tollgate sends; exit code 1 if there is no such one.',
  ],
  examples: ['tollgate webhooks list', 'tollgate webhooks test books', 'tollgate webhooks enable books'],
  actions: ACTIONS,
  flags: { ...CONFIG_FLAG, json: { help: 'list: print an array' } },
  words: { min: 1, max: 3 },
  run: runWebhooks,
};

async function runWebhooks(args: Args, io: Io): Promise<ExitCode> {
  const [action = '', id = '', event = ''] = args.words;
  const wrong = findMistakes(args);
  for (const line of wrong) io.err(line);
  if (wrong.length > 0) return EXIT.usage;
  const loaded = await loadFor(args, io);
  if (!loaded.ok) return loaded.code;
  const { registry, charges, webhooks: endpoints } = loaded.config;
  const named = registry?.store ?? charges.store;
  if (named === undefined) {
    io.err(
      'This configuration keeps no charges, its registry does; run the command with the configuration of the registry.',
    );
    return EXIT.usage;
  }
  const place = await storeAt(named);
  if (!place.exists()) {
    io.err(`There is no store at ${named.name} yet; the first start makes it.`);
    return EXIT.away;
  }
  const store: ChargesStore = place.openCharges({ now: Date.now, log: talk(io) });
  const outbox = createWebhooks(store.webhooks, () => endpoints);
  try {
    if (action === 'list') return await list(outbox, args, io);
    if (action === 'test') return await test(outbox, id, io);
    if (action === 'enable') return await enable(outbox, id, io);
    return await retry(outbox, id, event, io);
  } catch (error) {
    io.err(messageOf(error));
    return EXIT.away;
  } finally {
    await store.close();
  }
}

function findMistakes(args: Args): string[] {
  const [action = '', ...words] = args.words;
  const known = ACTIONS.find((each) => each === action);
  if (known === undefined) {
    const meant = suggest(action, ACTIONS);
    return [`webhooks: is followed by ${oneOf(ACTIONS)}${meant === undefined ? '' : `; did you mean ${meant}?`}`];
  }
  const mistakes: string[] = [];
  const wanted = WORDS[known];
  if (words.length > wanted.length) mistakes.push(`webhooks ${action}: has a word too many`);
  if (words.length < wanted.length)
    mistakes.push(
      `webhooks ${action}: needs ${wanted.slice(words.length).join(' and ')}; \`tollgate webhooks list\` shows the ids of webhooks`,
    );
  if (action !== 'list' && args.has('json')) mistakes.push('--json: is for webhooks list');
  return mistakes;
}

async function list(outbox: Webhooks, args: Args, io: Io): Promise<ExitCode> {
  const { viewWebhook } = await import('../registry/webhooks/webhook-view.ts');
  const all = (await outbox.list()).map(viewWebhook);
  if (args.has('json')) io.out(JSON.stringify(all));
  else if (all.length === 0) io.err('no webhooks; the configuration names them under `webhooks`');
  else {
    const rows = all.map((each) => [
      ...[each.id, each.status, String(each.waiting), each.oldest_waiting_at ?? '-', each.last_success_at ?? '-'],
      ...[each.host, each.events.join(','), each.status === 'ok' ? '' : (each.last_error ?? '')],
    ]);
    const columns = ['ID', 'STATE', 'WAITING', 'OLDEST', 'LAST TAKEN', 'HOST', 'EVENTS', 'WHY'];
    for (const line of tableOf(columns, rows)) io.out(line);
  }
  return EXIT.fine;
}

async function test(outbox: Webhooks, id: string, io: Io): Promise<ExitCode> {
  const event = await outbox.test(id, commandCause());
  if (event === undefined) return unknownId(io);
  io.out(event);
  return EXIT.fine;
}

async function enable(outbox: Webhooks, id: string, io: Io): Promise<ExitCode> {
  if ((await outbox.enable(id, commandCause())) === undefined) return unknownId(io);
  io.err('enabled; all that waits is sent');
  return EXIT.fine;
}

async function retry(outbox: Webhooks, id: string, event: string, io: Io): Promise<ExitCode> {
  const isKept = await outbox.retry(id, event, commandCause());
  if (isKept === undefined) return unknownId(io);
  io.err(isKept ? 'it is sent again' : 'no event with this id is kept for this webhook');
  return isKept ? EXIT.fine : EXIT.no;
}

function unknownId(io: Io): ExitCode {
  io.err('the configuration has no webhook with this id; `tollgate webhooks list` shows them');
  return EXIT.no;
}
