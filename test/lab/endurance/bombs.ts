// Throws every bomb at the proxy and at the registry, over and over: each is answered as it should be and soon, costs the
// server a bounded amount of its CPU, and leaves nothing behind.
import { readCpuUs } from '../../../bench/process.ts';
import { makeUpPayment, readTerms } from '../../support/made-up-payment.ts';
import { openRaw } from '../../support/raw-client.ts';
import { bodyBombs, headerBombs } from './bomb-cases.ts';
import type { Plan } from './plan.ts';
import type { Notes } from './report.ts';
import { expectSameStore } from './same-store.ts';
import { KEYS, type Stage } from './stage.ts';
import { fetchTerms } from './terms.ts';

type Bomb = { readonly name: string; readonly bytes: Buffer; readonly statuses: readonly number[] };
type Thrown = {
  readonly name: string;
  readonly wrong: readonly string[];
  readonly cpuMs: number;
  readonly slowestMs: number;
};

const REGISTER = '/v1/protected-routes/routes/register';
/** However busy the machine is. */
const ANSWER_MS = 3000;

export async function throwBombs(stage: Stage, plan: Plan, notes: Notes): Promise<void> {
  const paid = makeUpPayment(readTerms(await fetchTerms(stage)), Date.now());
  const atProxy = headerBombs(paid).map(({ name, headers, statuses }): Bomb => {
    const head = `GET /paid/bomb HTTP/1.1\r\nHost: h\r\n${headers}Connection: close\r\n\r\n`;
    return { name, statuses, bytes: Buffer.from(head, 'latin1') };
  });
  const atRegistry = bodyBombs().map(({ name, body, statuses }): Bomb => {
    const head = `POST ${REGISTER} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${KEYS.other}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`;
    return { name, statuses, bytes: Buffer.concat([Buffer.from(head), body]) };
  });
  const before = stage.stored();
  await judge('payment headers', stage.tollgate.port('proxy'), atProxy, stage, plan, notes);
  expectSameStore(notes, before, stage.stored());
  await judge('registry bodies', stage.tollgate.port('registry'), atRegistry, stage, plan, notes);
  // Those that are routes after all.
  const added = (stage.stored().rows['routes'] ?? 0) - (before.rows['routes'] ?? 0);
  notes.equal('routes that were made of them', added, 2);
}

async function judge(
  what: string,
  port: number,
  bombs: readonly Bomb[],
  stage: Stage,
  plan: Plan,
  notes: Notes,
): Promise<void> {
  const thrown: Thrown[] = [];
  const waited = stage.waiting();
  for (const bomb of bombs) thrown.push(await throwOften(port, bomb, plan.bombs, stage.tollgate.pid));
  const dearest = thrown.reduce((a, b) => (b.cpuMs > a.cpuMs ? b : a));
  const slowest = thrown.reduce((a, b) => (b.slowestMs > a.slowestMs ? b : a));
  notes.equal(
    `${what}: ${bombs.length} kinds, ${plan.bombs} of each, answered otherwise than right`,
    thrown.flatMap(({ wrong }) => wrong),
    [],
  );
  notes.atMost(`${what}: CPU for the dearest (${dearest.name})`, dearest.cpuMs, plan.bounds.bombCpuMs, ' ms');
  const { atMost } = notes.soon(waited());
  atMost(`${what}: longest wait for an answer (${slowest.name})`, slowest.slowestMs, ANSWER_MS, ' ms');
}

async function throwOften(port: number, { name, bytes, statuses }: Bomb, times: number, pid: number): Promise<Thrown> {
  const wrong = new Set<string>();
  let slowestMs = 0;
  const cpuBefore = readCpuUs(pid);
  for (let time = 0; time < times; time++) {
    const since = performance.now();
    const client = await openRaw(port);
    client.send(bytes);
    const { status } = await client.answer();
    client.close();
    slowestMs = Math.max(slowestMs, performance.now() - since);
    if (!statuses.includes(status)) wrong.add(`${name}: ${status}`);
  }
  return { name, wrong: [...wrong], cpuMs: (readCpuUs(pid) - cpuBefore) / 1000 / times, slowestMs };
}
