// Waits for a connection to the upstream that is kept for one request before it is sent. Money may move in between, so the
// request must not find out afterwards that no connection can be had. A new one has to stay for a moment: what stands in
// front of an upstream that is away often accepts and closes at once.
import { unreachable, type Connection, type ConnectionWaiter } from './connection.ts';
import type { CallFault } from './transport.ts';

/** Time that a new connection has to stay open before it counts as had. */
const STAYS_MS = 20;

export class Reservation implements ConnectionWaiter {
  readonly upgrade: boolean;
  readonly endsAt = Infinity;
  deadline: number;
  isOver = false;
  private readonly told: (had: Connection | CallFault) => void;

  /** Reserves a connection. `told` hears once: of the connection, or why none can be had. */
  constructor(upgrade: boolean, deadline: number, told: (had: Connection | CallFault) => void) {
    this.upgrade = upgrade;
    this.deadline = deadline;
    this.told = told;
  }

  moveTo(): void {
    // The connection is being made, and nobody ends it.
  }

  onConnection(connection: Connection): void {
    const { isNew } = connection;
    connection.reserve();
    this.isOver = true;
    if (isNew) setTimeout(() => this.conclude(connection), STAYS_MS);
    else this.told(connection);
  }

  fail(fault: CallFault): void {
    if (this.isOver) return;
    this.isOver = true;
    this.told(fault);
  }

  private conclude(connection: Connection): void {
    this.told(connection.isUsable ? connection : unreachable('the upstream closed the connection at once'));
  }
}
