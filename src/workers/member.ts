// Keeps one worker as its primary sees it: a child process, what it said last, and the connection that is on its way to
// it. A connection on its way to a worker that died is reset: no other process knows it, and it would hang for ever.
import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Report, Order } from './channel.ts';

export type Life = 'starting' | 'ready' | 'draining';

type MemberEvents = {
  readonly heard: (member: Member, message: Report) => void;
  /** The connection that was on its way was taken: another may follow. */
  readonly free: () => void;
  readonly ended: (member: Member, code: number | null, signal: NodeJS.Signals | null) => void;
};

export class Member {
  readonly number: number;
  /** Names this life of the worker. */
  readonly run: string;
  readonly startedAt: number;
  readonly child: ChildProcess;
  life: Life = 'starting';
  /** Whether it lacks nothing that requests are answered from. */
  isComplete = false;
  /** Reason why the worker said that it cannot start. */
  failure: string | undefined;
  /** Whether the worker was killed because its event loop stood still. */
  stalled = false;
  /** Time at which it was given a connection last. */
  givenAt = -Infinity;
  /** Time in which nothing was heard of the worker, by the turns of the primary. */
  silentMs = 0;
  says = '';
  private connections = 0;
  private onItsWay: { readonly socket: Socket; readonly since: number } | undefined;

  constructor(number: number, run: string, child: ChildProcess, now: number, events: MemberEvents) {
    this.number = number;
    this.run = run;
    this.child = child;
    this.startedAt = now;
    child.on('message', (message: Report) => this.hear(message, events));
    // A message that could not be sent: its end is told by `exit`.
    child.on('error', () => undefined);
    child.once('exit', (code, signal) => {
      this.onItsWay?.socket.resetAndDestroy();
      this.onItsWay = undefined;
      events.ended(this, code, signal);
    });
  }

  /** Connections that it has, the one on its way among them. */
  get load(): number {
    return this.connections + (this.onItsWay === undefined ? 0 : 1);
  }

  get isFree(): boolean {
    return this.life !== 'starting' && this.onItsWay === undefined && this.child.connected;
  }

  /** Milliseconds for which the connection on its way has been. */
  waitingMs(now: number): number {
    return this.onItsWay === undefined ? 0 : now - this.onItsWay.since;
  }

  send(message: Order): void {
    if (this.child.connected) this.child.send(message, () => undefined);
  }

  /** Hands a connection over, only while the channel is free. Our own end stays open until it has said that it took it. */
  give(socket: Socket, now: number, listener: string): void {
    const message: Order = { kind: 'connection', listener };
    this.onItsWay = { socket, since: now };
    this.givenAt = now;
    this.child.send(message, socket, { keepOpen: true }, () => undefined);
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }

  private hear(message: Report, events: MemberEvents): void {
    this.silentMs = 0;
    if (message.kind === 'taken' || message.kind === 'alive') this.connections = message.open;
    if (message.kind === 'alive') this.says = message.says;
    if (message.kind === 'ready' && this.life === 'starting') this.life = 'ready';
    if (message.kind === 'complete') this.isComplete = true;
    if (message.kind === 'failed') this.failure = message.reason;
    if (message.kind === 'taken') {
      // The worker has it open: this ends our end alone, and nothing is sent.
      this.onItsWay?.socket.destroy();
      this.onItsWay = undefined;
      events.free();
    }
    events.heard(this, message);
  }
}
