// Runs every row of mutations.ts in one process: for each a copy of the proxy whose source has the one line changed, in
// front of the upstreams that need the rule. Prints one JSON object a row. `caught`: what a protected handler ran for.
import { readdirSync, readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Draft } from './draft.ts';
import { describeDraft } from './draft.ts';
import type { Gateway, Settings } from './gateway.ts';
import { MUTATIONS, type Mutation } from './mutations.ts';
import { sendDraft } from './send.ts';
import type { Running } from './upstream.ts';
import { NPM } from './upstreams/npm.ts';

export type MutantResult = {
  readonly rule: string;
  /** How often the line stands in its file: once, or the row says nothing. */
  readonly places: number;
  readonly reached: readonly {
    readonly upstream: string;
    readonly draft: string;
    readonly intact: number;
    readonly mutated: number;
  }[];
};

const SOURCE = path.resolve(import.meta.dirname, '../../../src');
const QUERY = 'mutation=';

function pathOf(url: string): string {
  return url.startsWith('file:') ? fileURLToPath(url.split('?', 1)[0] ?? url) : url;
}

/** The files of `src` that a file imports, types aside. */
function importsOf(file: string): readonly string[] {
  const found = readFileSync(file, 'utf8').matchAll(
    /^(?:import|export)(?! type\b)[^;]*?'(\.[^']+)'|\bimport\('(\.[^']+)'\)/gm,
  );
  return [...found].map(([, still, later]) => path.resolve(path.dirname(file), still ?? later ?? ''));
}

/** Who imports each file. */
const importers = new Map<string, string[]>();
for (const name of readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })) {
  if (!name.endsWith('.ts')) continue;
  const file = path.join(SOURCE, name);
  for (const imported of importsOf(file)) importers.set(imported, [...(importers.get(imported) ?? []), file]);
}

/** `file` and everything that reaches it by imports: a copy of the program in which it is changed shares the rest. */
function dependents(file: string): ReadonlySet<string> {
  const found = new Set([file]);
  for (const each of found) for (const importer of importers.get(each) ?? []) found.add(importer);
  return found;
}
const changed = MUTATIONS.map(({ file }) => dependents(path.join(SOURCE, file)));

// A copy of the source per row: whatever imports a changed module is copied too.
registerHooks({
  resolve: (specifier, context, next) => {
    const resolved = next(specifier, context);
    const mutation = /\?mutation=(\d+)$/.exec(context.parentURL ?? '')?.[1];
    const file = pathOf(resolved.url);
    // The store and its threads decide nothing about a request.
    if (changed[Number(mutation)]?.has(file) !== true || file.includes('/registry/store/')) return resolved;
    return { ...resolved, url: `${resolved.url}?${QUERY}${mutation}` };
  },
  load: (url, context, next) => {
    const loaded = next(url, context);
    const mutation = MUTATIONS[Number(new RegExp(`\\?${QUERY}(\\d+)$`).exec(url)?.[1])];
    if (mutation === undefined || pathOf(url) !== path.join(SOURCE, mutation.file)) return loaded;
    return { ...loaded, source: readFileSync(pathOf(url), 'utf8').replace(mutation.text, () => mutation.by) };
  },
});

/** Any will do where the price alone counts. */
const PLAIN = 'node:http, string match';

type GatewayModule = { startGateway: () => Promise<Gateway>; STRICT: Settings };

const running = new Map<string, Running>();
async function upstream(name: string): Promise<Running> {
  const known = running.get(name);
  if (known !== undefined) return known;
  const spec = NPM.find((candidate) => candidate.name === name);
  if (spec === undefined) throw new Error(`no upstream is called ${name}`);
  const started = await spec.start();
  running.set(name, started);
  return started;
}

async function ran(gateway: Gateway, name: string, draft: Draft, settings: Settings): Promise<number> {
  const target = await upstream(name);
  await gateway.face(target.port, settings);
  const before = target.executions();
  await sendDraft(gateway.port, draft);
  return target.executions() - before;
}

/** 1 where less than `amount` is asked for, or nothing. */
async function asksLess(gateway: Gateway, draft: Draft, amount: string, settings: Settings): Promise<number> {
  const target = await upstream(PLAIN);
  await gateway.face(target.port, settings);
  const answer = await sendDraft(gateway.port, draft);
  return answer.startsWith('HTTP/1.1 402') && answer.includes(`"amount":"${amount}"`) ? 0 : 1;
}

async function run(mutation: Mutation, index: number, intact: Gateway): Promise<MutantResult> {
  const places = readFileSync(path.join(SOURCE, mutation.file), 'utf8').split(mutation.text).length - 1;
  const { startGateway, STRICT } = (await import(`./gateway.ts?${QUERY}${index}`)) as GatewayModule;
  const gateway = await startGateway();
  const settings = { ...STRICT, ...mutation.settings };
  const reached = [];
  for (const [name, draft] of mutation.needed) {
    reached.push({
      upstream: name,
      draft: describeDraft(draft),
      intact: await ran(intact, name, draft, settings),
      mutated: await ran(gateway, name, draft, settings),
    });
  }
  for (const [draft, amount] of mutation.dear ?? []) {
    reached.push({
      upstream: PLAIN,
      draft: `${describeDraft(draft)} for less than ${amount}`,
      intact: await asksLess(intact, draft, amount, settings),
      mutated: await asksLess(gateway, draft, amount, settings),
    });
  }
  await gateway.close();
  return { rule: mutation.rule, places, reached };
}

const { startGateway } = (await import('./gateway.ts')) as GatewayModule;
const intact = await startGateway();
for (const [index, mutation] of MUTATIONS.entries()) console.log(JSON.stringify(await run(mutation, index, intact)));
await intact.close();
for (const started of running.values()) await started.close();
process.exit(0);
