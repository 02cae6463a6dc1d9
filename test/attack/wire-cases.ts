// What hostile clients put on the wire, and what has to come of it: data only, all of it unpaid.
import type { How } from './run-wire-cases.ts';
import type { WireCase } from './wire-case.ts';
import { FRAMING_CASES } from './wire-cases-framing.ts';
import { HEAD_CASES } from './wire-cases-heads.ts';
import { HOP_CASES } from './wire-cases-hops.ts';

export const WIRE_CASES: readonly WireCase[] = [...FRAMING_CASES, ...HEAD_CASES, ...HOP_CASES];

export const WAYS = ['whole', 'byte by byte', 'behind', 'in front', 'kept alive'] as const satisfies readonly How[];

/** The cases that make sense in this way, by name. */
export function casesFor(how: (typeof WAYS)[number]): [string, WireCase][] {
  return WIRE_CASES.filter((wire) => fits(wire, how)).map((wire) => [wire.name, wire]);
}

function fits({ answers, open, send }: WireCase, how: How): boolean {
  // What is sent behind half a request belongs to it.
  if (how === 'in front') return open !== true;
  // A handshake behind a request is none, and CONNECT there ends the connection.
  if (how === 'behind') return !send.startsWith('CONNECT') && !answers.some((statuses) => statuses.includes(101));
  return true;
}
