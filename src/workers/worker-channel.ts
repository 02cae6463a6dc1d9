// A worker's end of the channel. Messages are worked on one after the other, so that a reload waits for the start; a
// connection is taken at once. Says every second that its event loop goes round.
import { messageOf } from '../host/error-message.ts';
import { Socket } from 'node:net';
import { ALIVE_MS, type Report, type Order } from './channel.ts';

/** Functions of a worker, once it was started. */
export type StartedWorker = {
  readonly take: (socket: Socket, listener: string) => void;
  /** Resolves when it lacks nothing that requests are answered from; never rejects. */
  readonly complete: Promise<void>;
  /** Connections that are open. */
  readonly open: () => number;
  /** The text that is told every second. */
  readonly says: () => string;
  /** Rejects with a sentence if `given` cannot be taken; what it resolves with puts it in force and cannot fail. */
  readonly prepare: (given: string) => Promise<() => void>;
  /** Takes on what is in force at once; it cannot fail. */
  readonly notice: (text: string) => void;
  readonly answer: (question: string) => Promise<string>;
  /** Reports what was counted since the last one. */
  readonly report: () => Promise<string>;
  readonly drain: () => void;
  /** Resolves when everything is finished, or the time is over. */
  readonly close: (withinMs: number) => Promise<void>;
};

type WorkerStart = { readonly worker: number; readonly run: string; readonly given: string };

/** Node's `process`, as far as it is needed. */
export type Channel = {
  /** Sends a message; `sent` is called when it has left. */
  readonly send: (message: Report, sent?: () => void) => void;
  readonly onMessage: (listener: (message: Order, socket: unknown) => void) => void;
};

/** Resolves with the exit code once it is to end. */
export function runWorker(
  { send, onMessage }: Channel,
  start: (started: WorkerStart) => Promise<StartedWorker>,
  couldNot: number,
): Promise<number> {
  const ended = Promise.withResolvers<number>();
  let served: StartedWorker | undefined;
  let prepared: { readonly reload: number; readonly putInForce: () => void } | undefined;
  const open = (): number => served?.open() ?? 0;
  let reporting: Promise<void> | undefined;
  const alive = setInterval(() => {
    send({ kind: 'alive', open: open(), says: served?.says() ?? '' });
    reporting ??= report().finally(() => {
      reporting = undefined;
    });
  }, ALIVE_MS);

  /** Resolves when it has left; what goes wrong with it must not end a worker. */
  const report = async (): Promise<void> => {
    try {
      const text = await served?.report();
      if (text !== undefined) await new Promise<void>((resolve) => send({ kind: 'metrics', report: text }, resolve));
    } catch {
      // The counts since the last report are not told; requests go on.
    }
  };

  const begin = async (started: WorkerStart): Promise<void> => {
    try {
      served = await start(started);
      send({ kind: 'ready' });
      void served.complete.then(() => send({ kind: 'complete' }));
    } catch (error) {
      send({ kind: 'failed', reason: messageOf(error) });
      ended.resolve(couldNot);
    }
  };
  const prepare = async (reload: number, given: string): Promise<void> => {
    try {
      if (served === undefined) return;
      prepared = { reload, putInForce: await served.prepare(given) };
      send({ kind: 'prepared', reload, problem: null });
    } catch (error) {
      send({ kind: 'prepared', reload, problem: messageOf(error) });
    }
  };
  const perform = async (message: Order): Promise<void> => {
    switch (message.kind) {
      case 'start':
        return begin(message);
      case 'prepare':
        return prepare(message.reload, message.given);
      case 'commit':
        if (prepared?.reload === message.reload) prepared.putInForce();
        prepared = undefined;
        return undefined;
      case 'notice':
        served?.notice(message.text);
        return undefined;
      case 'ask':
        if (served !== undefined)
          send({ kind: 'answer', ask: message.ask, answer: await served.answer(message.question) });
        return undefined;
      case 'drain':
        served?.drain();
        return undefined;
      case 'close':
        await served?.close(message.withinMs);
        clearInterval(alive);
        await reporting;
        await report();
        ended.resolve(0);
        return undefined;
      case 'connection':
        return undefined;
      default:
        return message satisfies never;
    }
  };
  let last = Promise.resolve();
  onMessage((message, socket) => {
    if (message.kind !== 'connection') {
      last = last.then(() => perform(message));
      return;
    }
    // The client may have gone on the way: then there is no socket.
    if (socket instanceof Socket) {
      if (served === undefined) socket.destroy();
      else served.take(socket, message.listener);
    }
    send({ kind: 'taken', open: open() });
  });
  return ended.promise.finally(() => clearInterval(alive));
}
