// `tollgate probe --upstream URL --path PATH`: asks the real upstream, around Tollgate, which spellings of a path it
// answers. It says which `upstream_profile` no spelling gets around. It sends nothing that could change anything,
// unless `--methods` names it.
import { parseDuration } from '../config/durations.ts';
import { createRandom, systemClock, systemSchedule, type Clock } from '../host/clock.ts';
import { PROFILE_NAMES, type ProfileName } from '../domain/routing/profile.ts';
import { allowedMethods } from '../domain/routing/method.ts';
import type { LoadedConfig } from '../config/config.ts';
import { parseUrl } from '../config/fields.ts';
import type { Args } from './args.ts';
import { hasAskedCustomers, tryAskedCustomers } from './asked-customers.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { loadNamed } from './configuration.ts';
import { readCurrentRoutes } from './current-routes.ts';
import { createAsk } from './probe/ask.ts';
import { hasLetter, type KnownPath } from './probe/canaries.ts';
import { describeTried, type TriedCredential } from './probe/made-up-credential.ts';
import { probePath, type PathReport } from './probe/path.ts';
import { judgeProfiles } from './probe/profiles.ts';
import { jsonReport } from './probe/report-json.ts';
import { isSafe, textReport } from './probe/report.ts';
import { readKnownPath } from './probe/tollgate.ts';

const DEFAULTS = { timeout: '5s', parallel: 4, bodyLimit: 65_536 } as const;
const MOST_PATHS = 20;

export const probe: Command = {
  name: 'probe',
  summary: 'ask your API which spellings of a path it answers, and say which profile is safe',
  usage: [
    'tollgate probe --upstream URL --path PATH [--path PATH]... [--profile NAME] [--json]',
    'tollgate probe --config FILE [--path PATH]...',
    '',
    'Sends PATH in some 100 other spellings straight to the upstream (not through Tollgate) and compares the answers with',
    'that of PATH and with those of paths that cannot exist. A profile is safe if every spelling that the upstream',
    'answers is refused or charged by Tollgate. What cannot be told from the real answer counts as answered.',
    '',
    'PATH must be one that your API answers to GET, with at least one segment and a letter in it: the root has no other',
    'spelling, and without a letter it is not known whether case counts. Name protected ones if you can: one that stands',
    'literally in your router, one that ends in a parameter, such as the id of something that exists, and so for every',
    'router that you run. Only GET, HEAD and OPTIONS are sent.',
    '',
    'With --config it also sends a made-up credential to every GET route whose plan asks your API who a customer is (ask).',
    'A 2xx means that such a plan opens the route to everybody. The upstream is then that of the file, and PATH may be left out.',
    '',
    'Exit code 0: a profile is safe (with --profile: that one). 1: none is, or it cannot be told, or a made-up credential is',
    'let through. 69: no answer came.',
  ],
  examples: [
    'tollgate probe --upstream http://localhost:3000 --path /v1/reports/q3',
    'tollgate probe --upstream http://localhost:3000 --path /v1/reports/q3 --profile express --json',
  ],
  flags: {
    config: {
      value: 'FILE',
      short: 'c',
      help: 'also try a made-up credential on the routes of this configuration whose plan uses ask',
    },
    upstream: { value: 'URL', help: 'your API as Tollgate reaches it: scheme, host, port' },
    path: {
      value: 'PATH',
      multiple: true,
      help: 'a path that it answers, with its query if it needs one; several times for several',
    },
    profile: { value: 'NAME', choices: PROFILE_NAMES, help: 'ask about this profile: exit code 1 if it is not safe' },
    header: { value: "'NAME: VALUE'", multiple: true, help: 'send this too, such as an Authorization or another Host' },
    methods: {
      value: 'POST,...',
      help: 'also send these to PATH, without a body, and see whether they are answered like GET; they may change things',
    },
    timeout: { value: 'DURATION', help: `for each question (${DEFAULTS.timeout})` },
    parallel: { value: 'N', help: `questions at once, 1 to 64 (${DEFAULTS.parallel})` },
    'body-limit': { value: 'BYTES', help: `of an answer that are read and compared (${DEFAULTS.bodyLimit})` },
    all: { help: 'list every spelling, also those that reach nothing' },
    json: { help: 'print everything as one JSON object' },
  },
  words: { min: 0, max: 0 },
  run: runProbe,
};

type Settings = {
  readonly upstream: URL;
  readonly paths: readonly KnownPath[];
  readonly profile: ProfileName | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly host: string;
  readonly methods: readonly string[];
  readonly timeoutMs: number;
  readonly parallel: number;
  readonly bodyLimit: number;
};

async function runProbe(args: Args, io: Io): Promise<ExitCode> {
  const loaded = args.has('config') ? loadNamed(args, io) : undefined;
  if (loaded?.ok === false) return loaded.code;
  const problems: string[] = [];
  const settings = readSettings(args, { version: io.version, config: loaded?.config }, problems);
  if (settings === undefined || problems.length > 0) {
    for (const problem of problems) io.err(problem);
    io.err('See `tollgate probe --help`.');
    return EXIT.usage;
  }
  const tried = loaded && (await tryCustomers(loaded.config, settings, io));
  const credentials = tried === undefined ? EXIT.fine : reportCustomers(tried, args, io);
  if (settings.paths.length === 0) return credentials;
  const spellings = await probeSpellings(args, settings, { io, tried });
  return spellings === EXIT.fine || credentials === EXIT.no ? credentials : spellings;
}

/** Tries a made-up credential where plans leave it to the API who a customer is; a sentence if that cannot be done. */
async function tryCustomers(
  config: LoadedConfig,
  settings: Settings,
  io: Io,
): Promise<readonly TriedCredential[] | string> {
  if (!hasAskedCustomers(config)) return [];
  const read = await readCurrentRoutes(config, io.version);
  return read.ok ? tryAskedCustomers(config, read.routes, settings) : read.problem;
}

function reportCustomers(tried: readonly TriedCredential[] | string, args: Args, io: Io): ExitCode {
  if (typeof tried === 'string') {
    io.err(tried);
    return EXIT.away;
  }
  const isAlone = args.all('path').length === 0;
  if (args.has('json')) {
    if (isAlone) io.out(JSON.stringify({ made_up_credentials: tried.map(toJson) }));
  } else {
    for (const each of tried) io.out(describeTried(each));
    if (tried.length === 0)
      io.out('No GET route has a plan that asks the API who a customer is (ask): nothing to try.');
    if (!isAlone) io.out('');
  }
  if (tried.some(({ found }) => found === 'open')) return EXIT.no;
  return tried.some(({ found }) => found === 'away') ? EXIT.away : EXIT.fine;
}

function toJson({ route, plan, customers, header, target, found, answer }: TriedCredential): object {
  const { method, pattern } = route;
  return { method, route_pattern: pattern, plan, customers, header, target, found, answer };
}

async function probeSpellings(
  args: Args,
  settings: Settings,
  { io, tried }: { io: Io; tried: readonly TriedCredential[] | string | undefined },
): Promise<ExitCode> {
  const { upstream, host, paths, profile, methods, parallel } = settings;
  const ask = createAsk({ ...settings, schedule: systemSchedule });
  const random = createRandom();
  const reports: PathReport[] = [];
  for (const known of paths) {
    reports.push(
      await probePath(known, {
        ask,
        host,
        methods,
        parallel,
        unlikely: () => `tollgate-probe-${random(6).toString('hex')}`,
        progress: createProgress(known.path, systemClock, io.err),
      }),
    );
    const away = reports.every(({ first }) => first.kind === 'none') ? reports[0]?.first : undefined;
    if (away?.kind === 'none') {
      io.err(`${upstream.origin} does not answer (${away.detail}): nothing was probed`);
      return EXIT.away;
    }
  }
  const judgement = judgeProfiles(reports, host);
  const probed = {
    upstream: upstream.origin,
    host,
    reports,
    judgement,
    tried: methods,
    asked: profile,
    all: args.has('all'),
  };
  if (args.has('json')) {
    const found = Array.isArray(tried) ? { made_up_credentials: tried.map(toJson) } : {};
    io.out(JSON.stringify({ ...jsonReport(probed), ...found }));
  } else for (const line of textReport(probed)) io.out(line);
  if (reports.every(({ told }) => !told.ok)) return EXIT.no;
  const safe = profile === undefined ? judgement.recommended !== undefined : isSafe(profile, judgement);
  return safe ? EXIT.fine : EXIT.no;
}

/** Everything that is wrong goes to `problems`; undefined if there is no upstream to speak of. */
function readSettings(
  args: Args,
  { version, config }: { version: string; config: LoadedConfig | undefined },
  problems: string[],
): Settings | undefined {
  const upstream = parseUrl(args.text('upstream') ?? config?.proxy?.upstream.origin ?? '');
  if (upstream === undefined || upstream.pathname !== '/' || upstream.search !== '' || upstream.username !== '')
    problems.push(`--upstream: ${upstreamAdvice(args.text('upstream'))}`);
  const paths = readPaths(args, config !== undefined, problems);
  const named = args.text('profile');
  const profile = PROFILE_NAMES.find((name) => name === named);
  if (named !== undefined && profile === undefined) problems.push(`--profile: is none of ${PROFILE_NAMES.join(' ')}`);
  const headers: Record<string, string> = { 'user-agent': `tollgate-probe/${version}`, accept: '*/*' };
  for (const line of args.all('header')) {
    const [, name, value] = /^([A-Za-z0-9-]{1,64}):[ \t]*([\x20-\x7e]*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) problems.push("--header: is no header; write 'Name: value'");
    else if (/^(?:connection|content-length|transfer-encoding|upgrade|expect)$/i.test(name))
      problems.push('--header: may not say how the request is framed');
    else headers[name.toLowerCase()] = value;
  }
  const timeoutMs = parseDuration(args.text('timeout') ?? DEFAULTS.timeout);
  if (timeoutMs === undefined || timeoutMs < 1 || timeoutMs > 600_000)
    problems.push('--timeout: is no duration from 1ms to 10m, such as 5s');
  const parallel = readCount(args.text('parallel'), DEFAULTS.parallel, 64);
  if (parallel === undefined) problems.push('--parallel: is no number from 1 to 64');
  const bodyLimit = readCount(args.text('body-limit'), DEFAULTS.bodyLimit, 16_777_216);
  if (bodyLimit === undefined) problems.push('--body-limit: is no number of bytes from 1 to 16777216');
  const methods = readMethods(args.text('methods'), problems);
  if (upstream === undefined || timeoutMs === undefined || parallel === undefined || bodyLimit === undefined)
    return undefined;
  const host = headers['host'] ?? upstream.host;
  return { upstream, paths, profile, headers: { host, ...headers }, host, methods, timeoutMs, parallel, bodyLimit };
}

function upstreamAdvice(given: string | undefined): string {
  const origin = given === undefined ? undefined : /^(?!https?:)[A-Za-z0-9.-]+(?::\d{1,5})?(?=\/?$)/.exec(given)?.[0];
  if (origin !== undefined) return `the scheme is missing; write http://${origin}`;
  return 'is needed: scheme, host and port of your API, such as http://127.0.0.1:3000; no path';
}

function readPaths(args: Args, mayLack: boolean, problems: string[]): KnownPath[] {
  const given = args.all('path');
  if (given.length === 0 && !mayLack)
    problems.push(
      '--path: is needed: a path that your API answers to GET, such as /v1/export; the root alone has no other spelling',
    );
  if (given.length > MOST_PATHS) problems.push(`--path: is given more than ${MOST_PATHS} times`);
  return given.flatMap((text) => {
    const read = readKnownPath(text);
    if (!read.ok) {
      problems.push(`--path ${text}: ${read.reason}`);
      return [];
    }
    if (hasLetter(read.known.path)) return [read.known];
    problems.push(
      `--path ${text}: has no letter that could be spelled in another way; name a path with a segment of letters, such as /v1/export`,
    );
    return [];
  });
}

function readMethods(text: string | undefined, problems: string[]): string[] {
  if (text === undefined) return [];
  const methods = [
    ...new Set(
      text
        .toUpperCase()
        .split(',')
        .map((method) => method.trim()),
    ),
  ];
  const allowed = allowedMethods(methods);
  for (const method of methods) {
    if (!/^[A-Z0-9!#$%&'*+.^_`|~-]{1,32}$/.test(method))
      problems.push('--methods: holds what is no method; write POST,PUT');
    else if (!allowed.has(method))
      problems.push(`--methods: ${method} is never let through, so there is nothing to try`);
  }
  return methods.filter((method) => !['GET', 'HEAD', 'OPTIONS'].includes(method));
}

function readCount(text: string | undefined, otherwise: number, most: number): number | undefined {
  if (text === undefined) return otherwise;
  const count = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  return count >= 1 && count <= most ? count : undefined;
}

const EVERY_MS = 2000;

/** Says how far a probe is: a line at most every two seconds, and none within the first two. */
export function createProgress(
  path: string,
  clock: Pick<Clock, 'monotonic'>,
  say: (line: string) => void,
): (done: number, of: number) => void {
  let last = clock.monotonic();
  return (done, of) => {
    const now = clock.monotonic();
    if (now - last < EVERY_MS) return;
    last = now;
    say(`${path}: ${done} of ${of} spellings asked`);
  };
}
