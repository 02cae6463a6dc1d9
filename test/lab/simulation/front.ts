// A proxy that is there already, and asks a process before it forwards: it asks again when it hears nothing, at times twice at
// once, forwards what it was allowed, says when the upstream gave no usable answer, and may die at any moment in between.
import type { Decided, Question } from './decision.ts';
import type { Process, Request, World } from './process.ts';
import type { Connection, Reply } from './relay.ts';
import type { Actor } from './scheduler.ts';

export type Front = {
  readonly actor: Actor;
  readonly handle: (request: Request) => { readonly connection: Connection; readonly reply: Promise<Reply> };
};

/** Times that a question is sent again on which nothing was heard. */
const TRIES = 3;
/** An allow is asked for again so often, by a front that forgets: more often than it is given. */
const FORGETFUL = 12;
const UNREACHABLE = { kind: 'answer', status: 502, reason: 'upstream_unreachable', served: false } as const;

export function createFront({ scheduler, weather, watch }: World, someProcess: () => Process | undefined): Front {
  const { draw } = scheduler;
  const actor = { name: 'front', alive: true };
  const namesRequests = !draw.chance(0.15);
  let requests = 0;

  const ask = async (question: Question, connection: Connection): Promise<Decided> => {
    await scheduler.point(actor, `asks for request ${question.request}`, weather.delay());
    const process = someProcess();
    if (process === undefined || !process.actor.alive) return { kind: 'broken' };
    const { asking, decided } = process.decide(question);
    const leave = (): void => {
      asking.gone = true;
      asking.reply({ kind: 'broken' });
    };
    if (connection.gone) leave();
    else if (weather.happens('front_impatience'))
      void scheduler.point(actor, 'waits no more', draw.below(draw.pick([500, 40_000]))).then(leave);
    return scheduler.crossing(actor, `hears about request ${question.request}`, decided);
  };
  const askUntilHeard = async (question: Question, connection: Connection): Promise<Decided> => {
    let heard: Decided = { kind: 'broken' };
    for (let tries = 0; tries < TRIES && heard.kind === 'broken'; tries++) heard = await ask(question, connection);
    return heard;
  };
  const decide = async (question: Question, connection: Connection): Promise<Decided> => {
    const times = weather.happens('front_doubts') ? 2 : 1;
    const all = await Promise.all(Array.from({ length: times }, () => askUntilHeard(question, connection)));
    const [first = { kind: 'broken' }] = all;
    const decided = all.find(({ kind }) => kind === 'allow') ?? first;
    if (decided.kind === 'allow' && weather.happens('front_forgets'))
      for (let times = 0; times < FORGETFUL; times++) await ask(question, connection);
    return decided;
  };
  const report = async (about: { method: string; target: string; chargeId: string }): Promise<void> => {
    await scheduler.point(actor, `reports ${about.chargeId.slice(-4)}`, weather.delay());
    const process = someProcess();
    if (process?.actor.alive === true && !weather.happens('report_lost'))
      await scheduler.crossing(actor, 'has reported', process.report(about));
  };
  /** Resolves with whether the upstream gave a usable answer. */
  const forward = async (chargeId: string, request: number): Promise<boolean> => {
    const fails = (): boolean => weather.happens('upstream_fails') || weather.happens('upstream_flaky');
    await scheduler.point(actor, `forwards request ${request}`, weather.delay());
    if (fails()) return false;
    watch.executed(chargeId, request);
    await scheduler.point(actor, `hears of the upstream for request ${request}`, weather.delay());
    return !fails();
  };

  const serve = async ({ method, target, credential, key }: Request, connection: Connection): Promise<Reply> => {
    const request = ++requests;
    const requestId = namesRequests ? `request-${request}` : undefined;
    const decided = await decide({ method, target, credential, key, requestId, request }, connection);
    if (decided.kind === 'broken') return { ...UNREACHABLE, chargeId: undefined };
    if (decided.kind === 'answer') return { ...decided, served: false };
    const { chargeId } = decided;
    if (weather.happens('front_dies')) return { kind: 'broken' };
    const isUsable = await forward(chargeId, request);
    if (weather.happens('front_dies')) return { kind: 'broken' };
    if (isUsable) {
      if (!connection.gone) watch.servedWhole(chargeId);
      return { kind: 'answer', status: 200, reason: undefined, chargeId, served: true };
    }
    await report({ method, target, chargeId });
    if (weather.happens('report_doubled')) void report({ method, target, chargeId });
    return { ...UNREACHABLE, chargeId, retrySeconds: 1 };
  };

  return {
    actor,
    handle: (request) => {
      const { promise: reply, resolve } = Promise.withResolvers<Reply>();
      const connection: Connection = { gone: false, reply: resolve };
      serve(request, connection).then(resolve, (error: unknown) => {
        watch.violated(`the front failed: ${String(error)}`);
        resolve({ kind: 'broken' });
      });
      return { connection, reply };
    },
  };
}
