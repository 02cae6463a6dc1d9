// `tollgate desk`: a one-time link that opens the owners' page, of the registry configured here or of one elsewhere; `desk
// sessions` and `desk revoke`: who is signed in, and an end to it. The link alone goes to standard output.
import { deskOf } from '../config/desk.ts';
import { parseUrl } from '../config/fields.ts';
import { messageOf } from '../host/error-message.ts';
import { DESK_NAME } from '../registry/desk/desk-links.ts';
import { unexpired } from '../registry/desk/desk-sessions.ts';
import type { DeskRole } from '../registry/store/desk-ports.ts';
import type { Args } from './args.ts';
import { commandCause, nameOfUser } from './command-cause.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { CONFIG_FLAG, loadWithSecrets, registryOf, talk } from './configuration.ts';
import { makeLocalLink, withDeskStore } from './desk-store.ts';
import { openLink } from './open-link.ts';
import { tableOf } from './table.ts';

const ASK_MS = 15_000;

export const desk: Command = {
  name: 'desk',
  summary: 'print a one-time link to the page for owners; list or end its sessions',
  usage: [
    'tollgate desk [--role viewer] [--as NAME] [--open] [--url REGISTRY --token JWT]',
    'tollgate desk sessions [--json]',
    'tollgate desk revoke ID|--all',
    '',
    'The link is good once, for 5 minutes. With --url the registry there makes it, for a JWT of its own.',
  ],
  examples: [
    'tollgate desk',
    'tollgate desk --role viewer --as accounting',
    'tollgate desk sessions',
    'tollgate desk revoke --all',
  ],
  actions: ['sessions', 'revoke'],
  flags: {
    ...CONFIG_FLAG,
    role: { value: 'viewer', choices: ['admin', 'viewer'], help: 'what it may do: admin (if left out) or viewer' },
    as: { value: 'NAME', help: 'under which name; your user name if left out' },
    open: { help: 'open it in a browser as well' },
    url: { value: 'REGISTRY', help: 'a registry elsewhere, such as https://registry.example.com' },
    token: { value: 'JWT', help: 'with --url: a dashboard token of that registry' },
    all: { help: 'revoke: every session' },
    json: { help: 'sessions: print an array' },
  },
  words: { min: 0, max: 2 },
  run: runDesk,
};

async function runDesk(args: Args, io: Io): Promise<ExitCode> {
  const wrong = findMistakes(args);
  for (const line of wrong) io.err(line);
  if (wrong.length > 0) return EXIT.usage;
  const who = {
    subject: args.text('as') ?? nameOfUser(),
    role: args.text('role') === 'viewer' ? 'viewer' : 'admin',
  } as const;
  try {
    const url = args.text('url');
    if (url !== undefined) return await show(await askElsewhere(url, args.text('token') ?? '', who), args, io);
    const loaded = await loadWithSecrets(args, io);
    if (!loaded.ok) return loaded.code;
    const registry = registryOf(loaded.config, io);
    if (registry === undefined) return EXIT.usage;
    const section = deskOf(registry);
    if (section === undefined) {
      io.err('This registry serves no desk; registry.desk says where it would be.');
      return EXIT.usage;
    }
    const [action, id = ''] = args.words;
    if (action === 'sessions') {
      const sessions = await withDeskStore(registry, talk(io), (store) =>
        store.listSessions(unexpired(section.session, Date.now())),
      );
      const rows = sessions.map((each) => ({
        ...{ id: each.id, subject: each.subject, role: each.role, via: each.via },
        created_at: new Date(each.createdAt).toISOString(),
        seen_at: new Date(each.seenAt).toISOString(),
      }));
      if (args.has('json')) io.out(JSON.stringify(rows));
      else if (rows.length === 0) io.err('nobody is signed in');
      else
        for (const line of tableOf(
          ['ID', 'ROLE', 'VIA', 'SINCE', 'SEEN', 'WHO'],
          rows.map((row) => [row.id, row.role, row.via, row.created_at, row.seen_at, row.subject]),
        ))
          io.out(line);
      return EXIT.fine;
    }
    if (action === 'revoke') {
      const end = { ...commandCause(), at: Date.now() };
      const ended = await withDeskStore(registry, talk(io), async (store) =>
        args.has('all') ? store.endAllSessions(end) : Number(await store.endSession(id, end)),
      );
      io.err(ended === 0 ? 'no such session; `tollgate desk sessions` shows them' : `ended ${ended}`);
      return ended > 0 || args.has('all') ? EXIT.fine : EXIT.no;
    }
    if (!section.signIn.includes('link')) {
      io.err('This desk is not opened by links: registry.desk.sign_in names other ways.');
      return EXIT.usage;
    }
    if (section.publicUrl === undefined && registry.listen.port === 0) {
      io.err('registry.listen has port 0, so where the desk is cannot be known here; write a port.');
      return EXIT.usage;
    }
    const link = await makeLocalLink(registry, talk(io), who);
    return await show(
      link ?? new Error('A hundred links wait to be opened; each is over after five minutes.'),
      args,
      io,
    );
  } catch (error) {
    io.err(messageOf(error));
    return EXIT.away;
  }
}

async function show(link: string | Error, args: Args, io: Io): Promise<ExitCode> {
  if (link instanceof Error) {
    io.err(link.message);
    return EXIT.no;
  }
  io.out(link);
  if (args.has('open') && !(await openLink(link, io.env['BROWSER'] || undefined)))
    io.err('No browser could be started; open the link yourself.');
  return EXIT.fine;
}

/** Asks a registry elsewhere for a link; an Error if it says no. Rejects if it is not there. */
async function askElsewhere(
  url: string,
  token: string,
  { subject, role }: { readonly subject: string; readonly role: DeskRole },
): Promise<string | Error> {
  const answer = await fetch(new URL('/v1/desk-links', url), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ role, as: subject }),
    redirect: 'error',
    signal: AbortSignal.timeout(ASK_MS),
  }).catch((error: unknown) => {
    // What fetch says by itself is that it failed; its cause says why.
    const why = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new Error(`No registry answers at ${new URL(url).origin}: ${messageOf(why)}`);
  });
  const body: unknown = await answer.json().catch(() => undefined);
  const told = typeof body === 'object' && body !== null ? new Map(Object.entries(body)) : new Map<string, unknown>();
  const link: unknown = told.get('url');
  if (answer.status === 201 && typeof link === 'string') return link;
  const detail: unknown = told.get('detail');
  return new Error(`The registry answered ${answer.status}${typeof detail === 'string' ? `: ${detail}` : ''}`);
}

function findMistakes(args: Args): string[] {
  const [action, id] = args.words;
  const mistakes: string[] = [];
  const role = args.text('role');
  if (action !== undefined && action !== 'sessions' && action !== 'revoke')
    mistakes.push('desk: is followed by nothing, sessions or revoke');
  if (action === 'sessions' && id !== undefined) mistakes.push('desk sessions: has a word too many');
  if (action === 'revoke' && (id === undefined) !== args.has('all'))
    mistakes.push('desk revoke: needs the id of a session, or --all');
  if (role !== undefined && role !== 'admin' && role !== 'viewer') mistakes.push('--role: is not admin or viewer');
  const name = args.text('as');
  if (name !== undefined && !DESK_NAME.test(name)) mistakes.push('--as: is not a name of 1 to 128 characters');
  if (args.has('url') !== args.has('token')) mistakes.push('--url and --token: belong together');
  const url = args.text('url');
  if (url !== undefined && parseUrl(url) === undefined) mistakes.push('--url: is not an http or https URL');
  if (action !== undefined && ['url', 'open', 'role', 'as'].some((flag) => args.has(flag)))
    mistakes.push(`desk ${action}: takes none of --role, --as, --open, --url`);
  return mistakes;
}
