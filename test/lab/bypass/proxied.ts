// The bypass cases through the real proxies of this machine with their shipped configurations: with no payment ever sent, nothing
// protected runs, and everything that arrives at the API was allowed, with that method and that target.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { startShippedProxy, type ProxyProgram } from '../../support/shipped-proxy.ts';
import { SECRET, startDecisionGateway, type DecisionSettings } from './decision-gateway.ts';
import { startTap } from './decision-tap.ts';
import type { Draft } from './draft.ts';
import { startRecorder } from './recorder.ts';
import { sendAll } from './send.ts';
import type { UpstreamSpec } from './upstream.ts';

export type ProxiedRow = {
  readonly proxy: string;
  readonly slashes: DecisionSettings['slashes'];
  readonly cases: number;
  readonly asked: number;
  readonly allowed: number;
  readonly forwarded: number;
  /** Protected handlers that ran, and in which routers. */
  readonly executions: number;
  readonly reached: readonly string[];
  /** `METHOD TARGET` of what arrived at the API and was not allowed as that. */
  readonly undecided: readonly string[];
  readonly unreadable: number;
};

export type ProxiedOptions = {
  readonly programs: readonly ProxyProgram[];
  readonly routers: readonly UpstreamSpec[];
  readonly drafts: readonly Draft[];
  readonly slashes?: readonly DecisionSettings['slashes'][];
  readonly silenceMs: number;
  /** A fault for the configuration, which the run has to notice. */
  readonly edit?: (text: string) => string;
  readonly progress?: (row: ProxiedRow) => void;
};

const WIDTH = 32;

export async function runProxied(options: ProxiedOptions): Promise<ProxiedRow[]> {
  const { programs, slashes = ['strict'], progress } = options;
  const settings = programs.flatMap(({ dialect }) => slashes.map((each) => ({ dialect, slashes: each })));
  const unique = new Map(settings.map((each) => [`${each.dialect} ${each.slashes}`, each]));
  const gateway = await startDecisionGateway([...unique.values()]);
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-proxied-'));
  try {
    const rows: ProxiedRow[] = [];
    for (const program of programs)
      for (const each of slashes) {
        const decision = gateway.portOf({ dialect: program.dialect, slashes: each });
        const place = path.join(folder, `${rows.length}`);
        const row = await runOne(program, { ...options, decision, place });
        rows.push({ ...row, slashes: each });
        progress?.({ ...row, slashes: each });
      }
    return rows;
  } finally {
    await gateway.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runOne(
  program: ProxyProgram,
  options: ProxiedOptions & { readonly decision: number; readonly place: string },
): Promise<Omit<ProxiedRow, 'slashes'>> {
  const { drafts, routers, silenceMs, decision, place, edit } = options;
  const recorder = await startRecorder(routers);
  const tap = await startTap(decision);
  try {
    const proxy = await startShippedProxy(program, place, {
      ...{ upstream: recorder.port, decision: tap.port, secret: SECRET },
      ...(edit === undefined ? {} : { edit }),
    });
    try {
      await sendAll(proxy.port, drafts, WIDTH, silenceMs);
      await quiet(() => [tap.asked(), recorder.arrived.length, recorder.inFlight()]);
    } finally {
      await proxy.close();
    }
    await quiet(() => [recorder.arrived.length, recorder.inFlight()]);
    return {
      ...{ proxy: program.name, cases: drafts.length, asked: tap.asked() },
      ...{ allowed: tap.allowed.length, forwarded: recorder.arrived.length },
      ...{ executions: recorder.executions(), reached: recorder.reached(), unreadable: recorder.unreadable() },
      undecided: without(recorder.arrived, tap.allowed),
    };
  } finally {
    await tap.close();
    await recorder.close();
  }
}

/** Resolves when nothing has changed for a while and the last number, of what is under way, is 0. */
async function quiet(look: () => readonly number[]): Promise<void> {
  for (let calm = 0, before = look(); calm < 5;) {
    await setTimeout(40);
    const now = look();
    calm = now.at(-1) === 0 && now.every((each, index) => each === before[index]) ? calm + 1 : 0;
    before = now;
  }
}

/** Finds what of `all` is not in `taken`, each of which counts once. */
function without(all: readonly string[], taken: readonly string[]): string[] {
  const left = new Map<string, number>();
  for (const each of taken) left.set(each, (left.get(each) ?? 0) + 1);
  return all.filter((each) => {
    const count = left.get(each) ?? 0;
    left.set(each, count - 1);
    return count <= 0;
  });
}

/** What must not be, each as a sentence. */
export function proxiedFaults(rows: readonly ProxiedRow[]): string[] {
  return rows.flatMap(({ proxy, slashes, executions, reached, undecided, unreadable, asked, forwarded }) => {
    const where = `${proxy} (${slashes})`;
    return [
      ...(executions > 0 ? [`${where}: ${executions} unpaid executions, in ${reached.join(', ')}`] : []),
      ...undecided.map((each) => `${where}: forwarded and not allowed as that: ${JSON.stringify(each)}`),
      ...(unreadable > 0 ? [`${where}: forwarded ${unreadable} that are no HTTP`] : []),
      ...(asked === 0 || forwarded === 0 ? [`${where}: nothing was asked or forwarded, so this shows nothing`] : []),
    ];
  });
}
