// Runs cases against one upstream, straight and through the proxy, and says what got through. Batches are judged by the
// upstream's own counter; only a batch that moved it is looked into, case by case, and what is found is made as small as
// it can be while it still gets through.
import type { Draft } from './draft.ts';
import type { Gateway, Settings } from './gateway.ts';
import { sendAll, sendDraft } from './send.ts';
import { shrink } from './shrink.ts';
import type { Running } from './upstream.ts';

export type Direct = { readonly executions: number };

export type Passage = {
  readonly settings: Settings;
  readonly cases: number;
  /** Executions of protected handlers that nobody paid for. */
  readonly executions: number;
  readonly demanded: number;
  readonly refused: number;
  readonly forwarded: number;
  /** Requests that reached the upstream; undefined where it cannot tell. */
  readonly seen: number | undefined;
  /** Requests by which the upstream saw more than the proxy sent on. */
  readonly surplus: readonly Draft[];
  /** The smallest requests found that get through, at most `MOST_FOUND`. */
  readonly found: readonly Draft[];
};

const WIDTH = 64;
const BATCH = 512;
const MOST_FOUND = 8;

export async function runDirect(upstream: Running, drafts: readonly Draft[], silenceMs: number): Promise<Direct> {
  const before = upstream.executions();
  await sendAll(upstream.port, drafts, WIDTH, silenceMs);
  await drained(upstream);
  await quiet(upstream);
  return { executions: upstream.executions() - before };
}

/** `hunt`: what is found is isolated and made small; else only counted. */
export async function runThrough(
  gateway: Gateway,
  upstream: Running,
  settings: Settings,
  drafts: readonly Draft[],
  { hunt, silenceMs }: { readonly hunt: boolean; readonly silenceMs: number },
): Promise<Passage> {
  await gateway.face(upstream.port, settings);
  const start = await settled(gateway);
  await quiet(upstream);
  const seenBefore = upstream.seen?.();
  const executedBefore = upstream.executions();
  const suspicious: Draft[][] = [];
  for (let at = 0; at < drafts.length; at += BATCH) {
    const batch = drafts.slice(at, at + BATCH);
    const before = upstream.executions();
    await sendAll(gateway.port, batch, WIDTH, silenceMs);
    if (upstream.executions() !== before) suspicious.push(batch);
  }
  const end = await settled(gateway);
  const seenAfter = upstream.seen?.();
  await quiet(upstream);
  const executions = upstream.executions() - executedBefore;

  // A request whose body breaks off was sent on and is not counted as such: only then each is looked at alone.
  const surplus: Draft[] = [];
  const sent = end.forwarded - start.forwarded;
  if (seenBefore !== undefined && seenAfter !== undefined && seenAfter - seenBefore > sent) {
    for (const draft of drafts) if (await isSurplus(gateway, upstream, draft)) surplus.push(draft);
  }

  const found: Draft[] = [];
  const passes = async (draft: Draft): Promise<boolean> => {
    // What an earlier request still does must not be blamed on this one.
    await quiet(upstream);
    const before = upstream.executions();
    await sendDraft(gateway.port, draft);
    await settled(gateway);
    await quiet(upstream);
    return upstream.executions() !== before;
  };
  for (const batch of hunt ? suspicious : []) {
    for (const draft of batch) {
      if (found.length >= MOST_FOUND) break;
      if (!(await passes(draft))) continue;
      const small = await shrink(draft, passes);
      if (!found.some((known) => JSON.stringify(known) === JSON.stringify(small))) found.push(small);
    }
  }
  return {
    settings,
    cases: drafts.length,
    executions,
    demanded: end.demanded - start.demanded,
    refused: end.refused - start.refused,
    forwarded: end.forwarded - start.forwarded,
    seen: seenBefore === undefined || seenAfter === undefined ? undefined : seenAfter - seenBefore,
    surplus,
    found,
  };
}

/** The upstream saw more requests than the proxy sent on; one whose body was refused half-way counts as sent on. */
async function isSurplus(gateway: Gateway, upstream: Running, draft: Draft): Promise<boolean> {
  const before = await settled(gateway);
  const seen = upstream.seen?.() ?? 0;
  const answer = await sendDraft(gateway.port, draft);
  const after = await settled(gateway);
  const brokenOff = /HTTP\/1\.1 400 /.test(answer) ? 1 : 0;
  return (upstream.seen?.() ?? 0) - seen > after.forwarded - before.forwarded + brokenOff;
}

/**
 * Resolves when the upstream has read and closed every connection that was made straight to it: on a busy machine it comes to
 * some long after their clients have given them up. Of one that cannot tell `quiet` has to do.
 */
async function drained({ connections }: Running): Promise<void> {
  if (connections === undefined) return;
  for (let open = await connections(); open > 0; open = await connections())
    await new Promise((resolve) => setTimeout(resolve, 5));
}

/**
 * Resolves when the upstream has done what it was sent, connections that were given up on included: what it still had to
 * do would be counted against the next run.
 */
async function quiet(upstream: Running): Promise<void> {
  for (let calm = 0; calm < 2;) {
    const before = upstream.executions();
    await fetch(`http://127.0.0.1:${upstream.port}/free/quiet`, { headers: { connection: 'close' } }).then((answer) =>
      answer.text(),
    );
    await new Promise((resolve) => setTimeout(resolve, 20));
    calm = upstream.executions() === before ? calm + 1 : 0;
  }
}

/** The proxy's totals once nothing is under way any more. */
async function settled(gateway: Gateway): ReturnType<Gateway['totals']> {
  for (let tries = 0; ; tries++) {
    const totals = await gateway.totals();
    if (totals.inFlight === 0 || tries === 200) return totals;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
