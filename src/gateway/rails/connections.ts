// Keep-alive connections to one service, for calls that are made once: each carries one call at a time, is kept for a few
// seconds, and is destroyed by whatever was not expected on it. Of a call that failed it is known whether a byte of it may
// have left: a call is written only to a connection that is there, in TLS only after the handshake.
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Clock, Schedule } from '../../host/clock.ts';
import { createOutbox } from '../../host/outbox.ts';
import { createLines } from '../../http/response-head.ts';
import type { Deadline } from './deadline.ts';
import { createWholeAnswers, type Progress, type WholeAnswers } from './whole-answers.ts';

export type CallFailure = {
  readonly kind: 'failed';
  /** A phrase for the log, without any of what was sent or answered. */
  readonly why: string;
  /** False: it is certain that nothing of the call reached the service. */
  readonly sent: boolean;
  /** Whoever asks next may have to wait as long. */
  readonly slow: boolean;
};
export type CallEnd = { readonly kind: 'answer'; readonly status: number; readonly body: Buffer } | CallFailure;

export type Connections = {
  /** Sends `request`, a whole HTTP/1.1 request, and reads an answer of at most `maxBytes`. Never rejects. */
  readonly call: (request: RequestText, maxBytes: number, deadline: Deadline) => Promise<CallEnd>;
};

/** Head and body, and how they become bytes. */
export type RequestText = { readonly text: string; readonly encoding: 'latin1' | 'utf8' };

export type ConnectionsDeps = { readonly schedule: Schedule; readonly clock: Pick<Clock, 'monotonic'> };

type Connection = {
  readonly socket: Socket;
  readonly answers: WholeAnswers;
  /** Of the call that it carries. */
  finish: ((end: CallEnd) => void) | undefined;
  /** It may be on its way; whatever comes before that is no answer to it. */
  left: boolean;
  /** When it has been idle for too long; 0 while it carries a call. */
  idleUntil: number;
};

/** How often connections that were idle for too long are looked for. */
const SWEEP_MS = 1000;
const READ_BYTES = 64 * 1024;

/** `origin`: scheme, host and port. */
export function createConnections(origin: URL, { schedule, clock }: ConnectionsDeps): Connections {
  const outbox = createOutbox();
  const lines = createLines();
  // The one that was used last is taken first: it is the least likely to be dead. No more are idle than were busy at a
  // time within the last seconds, and those are bounded by whoever calls.
  const idle: Connection[] = [];
  // What any of the connections reads, until the next read.
  const bytes = Buffer.allocUnsafeSlow(READ_BYTES);
  let sweeping = false;

  const sweep = (): void => {
    const now = clock.monotonic();
    for (const connection of idle.splice(0)) {
      if (connection.idleUntil > now && !connection.socket.destroyed) idle.push(connection);
      else connection.socket.destroy();
    }
    sweeping = idle.length > 0;
    if (sweeping) schedule(SWEEP_MS, sweep);
  };

  const park = (connection: Connection, reuseMs: number): void => {
    const { socket } = connection;
    // What is still to be written belongs to a call that is over.
    if (reuseMs <= 0 || socket.destroyed || socket.writableLength > 0) {
      socket.destroy();
      return;
    }
    connection.idleUntil = clock.monotonic() + reuseMs;
    idle.push(connection);
    socket.unref();
    if (!sweeping) {
      sweeping = true;
      schedule(SWEEP_MS, sweep);
    }
  };

  const take = (): Connection | undefined => {
    const now = clock.monotonic();
    for (let last = idle.pop(); last !== undefined; last = idle.pop()) {
      if (last.idleUntil > now && !last.socket.destroyed && last.socket.readable) {
        last.idleUntil = 0;
        last.socket.ref();
        return last;
      }
      last.socket.destroy();
    }
    return undefined;
  };

  /** Ends the call on `connection`, if there is one. */
  const end = (connection: Connection, result: CallEnd, reuseMs = 0): void => {
    const { finish } = connection;
    connection.finish = undefined;
    if (finish !== undefined && reuseMs > 0) park(connection, reuseMs);
    else connection.socket.destroy();
    finish?.(result);
  };

  const progress = (connection: Connection, step: Progress): void => {
    switch (step.kind) {
      case 'more':
        return;
      case 'whole':
        end(connection, { kind: 'answer', status: step.status, body: step.body }, step.reuseMs);
        return;
      case 'wrong':
        end(connection, failed(step.why));
        return;
      default:
        step satisfies never;
    }
  };

  /** Whatever a connection says is about its call; without one it has nothing to say. */
  const receive = (connection: Connection, size: number): void => {
    const { socket, answers, finish, left } = connection;
    if (finish === undefined || !left) socket.destroy();
    else progress(connection, answers.read(bytes.subarray(0, size)));
  };

  const open = (): Connection => {
    const host = origin.hostname.replace(/^\[|\]$/g, '');
    const secure = origin.protocol === 'https:';
    const onread = {
      buffer: bytes,
      callback: (size: number): boolean => {
        receive(connection, size);
        return true;
      },
    };
    const target = { host, port: Number(origin.port || (secure ? 443 : 80)), noDelay: true, onread };
    const name = isIP(host) === 0 ? { servername: host } : {};
    const socket = secure ? connectTls({ ...target, ALPNProtocols: ['http/1.1'], ...name }) : connectPlain(target);
    const answers = createWholeAnswers(lines);
    const connection: Connection = { socket, answers, finish: undefined, left: false, idleUntil: 0 };
    return connection;
  };

  /** From here on its socket is connected. */
  const adopt = (connection: Connection): void => {
    const { socket } = connection;
    const lose = (): void => end(connection, failed('the connection was lost'));
    socket.on('end', () => {
      if (connection.finish !== undefined) progress(connection, connection.answers.end());
      lose();
    });
    socket.on('error', lose);
    socket.on('close', lose);
  };

  const send = (
    connection: Connection,
    { text, encoding }: RequestText,
    maxBytes: number,
    deadline: Deadline,
    finish: (end: CallEnd) => void,
  ): void => {
    connection.left = false;
    connection.finish = finish;
    connection.answers.begin(maxBytes);
    deadline.whenOver(() => end(connection, failed('it did not answer in time', { slow: true })));
    outbox.write(connection.socket, text, encoding, () => {
      connection.left = true;
    });
  };

  return {
    call: (request, maxBytes, deadline) =>
      new Promise((resolve) => {
        const finish = (result: CallEnd): void => {
          deadline.whenOver(undefined);
          resolve(result);
        };
        const known = take();
        if (known !== undefined) return send(known, request, maxBytes, deadline, finish);
        const connection = open();
        const { socket } = connection;
        const unreachable = (): void => {
          socket.destroy();
          finish(failed('it cannot be reached', { sent: false, slow: true }));
        };
        socket.on('error', unreachable);
        socket.on('close', unreachable);
        deadline.whenOver(unreachable);
        socket.once(origin.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
          if (deadline.isOver()) return;
          socket.off('error', unreachable);
          socket.off('close', unreachable);
          adopt(connection);
          send(connection, request, maxBytes, deadline, finish);
        });
      }),
  };
}

function failed(why: string, { sent = true, slow = false } = {}): CallFailure {
  return { kind: 'failed', why, sent, slow };
}
