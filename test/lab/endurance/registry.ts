// One API key that does too much: registers routes without end, asks `/match` about 8 KiB paths, opens thousands of event
// streams. Its limits hold, and everybody else goes on: other keys, dashboards, free requests.
import { ask, type Answer } from '../../../bench/check.ts';
import type { Plan } from './plan.ts';
import type { Notes } from './report.ts';
import { KEYS, type Stage } from './stage.ts';

const ROUTES = '/v1/protected-routes/routes';
const MATCH_CPU_US = 3000;
const IN_FORCE_MS = 5000;
/** Routes of the configuration and of the bombs, at most. */
const EARLIER_ROUTES = 10;

export async function floodRegistrations(stage: Stage, plan: Plan, notes: Notes): Promise<void> {
  const { registrationsPerMinute, routes } = plan.registry;
  const flood = (key: string, prefix: string, count: number) =>
    stage.requests('registry', { kind: { name: 'register', key, prefix }, connections: 16, count, perSecond: 0 });
  const since = performance.now();
  const waited = stage.waiting();
  const flooding = flood(KEYS.flood, 'flood', registrationsPerMinute * 2);
  const free = stage.free(plan.freeSeconds);
  const other = await register(stage, KEYS.other, '/others/new');
  notes.equal('meanwhile a route of another key', other.status, 201);
  const inForceMs = await inForce(stage, '/others/new');
  const one = await flooding;
  const minutes = (performance.now() - since) / 60_000;
  const { faults, p99Us, maxMs } = await free;
  const { 201: made = 0, '429 too_many_requests': refused = 0 } = one.statuses;
  notes.report(
    `answers to ${one.answers} registrations of one key in ${(minutes * 60).toFixed(0)} s`,
    JSON.stringify(one.statuses),
  );
  notes.report('CPU of each, ms', (one.cpuUsEach / 1000).toFixed(2));
  notes.atMost('routes it added', made, Math.ceil(registrationsPerMinute * (1 + minutes)) + 1);
  notes.equal(
    'the rest was refused with when to come back',
    refused === one.answers - made && one.withoutRetry === 0,
    true,
  );
  const { atMost, equal } = notes.soon(waited());
  atMost('that other route was in force on the proxy after', inForceMs, IN_FORCE_MS, ' ms');
  atMost('p99 of free requests meanwhile', p99Us / 1000, plan.bounds.freeMs, ' ms');
  notes.report('longest of them, ms', maxMs.toFixed(0));
  equal('free requests that failed', faults, []);
  notes.equal('what is stored registers as ever', (await register(stage, KEYS.flood, '/paid/*')).status, 200);
  const rest = await flood(KEYS.other, 'rest', registrationsPerMinute);
  const stored = stage.stored().rows['routes'] ?? 0;
  notes.report('answers to registrations of another key, up to the limit of routes', JSON.stringify(rest.statuses));
  notes.atMost('routes stored', stored, routes);
  notes.equal(
    'that limit was reached',
    stored === routes && (rest.statuses['422 invalid'] ?? 0) > 0,
    registrationsPerMinute * 2 > routes + EARLIER_ROUTES,
  );
}

export async function abuseMatch(stage: Stage, plan: Plan, notes: Notes): Promise<void> {
  const { matches } = plan.registry;
  const waited = stage.waiting();
  const [asked, free] = await Promise.all([
    stage.requests('registry', {
      kind: { name: 'match', key: KEYS.flood },
      connections: 16,
      count: matches,
      perSecond: 0,
    }),
    stage.free(plan.freeSeconds),
  ]);
  notes.equal(`answers to ${matches} questions of 8 KiB`, asked.statuses, { 200: matches });
  notes.atMost('CPU of each', asked.cpuUsEach, MATCH_CPU_US, ' us');
  const { atMost, equal } = notes.soon(waited());
  atMost('p99 of free requests meanwhile', free.p99Us / 1000, plan.bounds.freeMs, ' ms');
  equal('free requests that failed', free.faults, []);
}

export async function openStreams(stage: Stage, plan: Plan, notes: Notes): Promise<void> {
  const { streams, streamsPerKey } = plan.registry;
  const registry = stage.tollgate.port('registry');
  const restMb = stage.residentMb();
  stage.mostMb();
  const many = stage.talk('event-streams.ts', [registry, streams, KEYS.flood]);
  const other = stage.talk('event-streams.ts', [registry, 1, KEYS.other]);
  try {
    const { open, statuses } = await many.said;
    notes.equal(`of ${streams} event streams of one key are open`, open, streamsPerKey);
    notes.equal('answers', statuses, { 200: streamsPerKey, 429: streams - streamsPerKey });
    notes.equal('another key has its stream', (await other.said)['open'], 1);
    const since = performance.now();
    const health = await ask(registry, { method: 'GET', path: '/v1/health' });
    const answered = await register(stage, KEYS.other, '/paid/*');
    notes.equal('health and a registration are answered', [health.status, answered.status], [200, 200]);
    const free = await stage.free(plan.freeSeconds);
    notes.equal('free requests that failed', free.faults, []);
    notes.report(
      'answered after, ms; p99 of free requests, ms',
      `${(performance.now() - since - plan.freeSeconds * 1000).toFixed(0)}; ${(free.p99Us / 1000).toFixed(1)}`,
    );
    notes.equal('streams still open', (await many.ask())['open'], streamsPerKey);
    notes.report('resident memory more than before, MiB', (stage.mostMb() - restMb).toFixed(0));
  } finally {
    await Promise.all([many.end(), other.end()]);
  }
}

function register({ tollgate }: Stage, key: string, pattern: string): Promise<Answer> {
  const body = JSON.stringify({ route_pattern: pattern, method: '*', amount: '0.01' });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return ask(tollgate.port('registry'), { method: 'POST', path: `${ROUTES}/register`, body, headers });
}

/** How long until `path` costs something. */
async function inForce({ tollgate }: Stage, path: string): Promise<number> {
  const since = performance.now();
  for (;;) {
    const { status } = await ask(tollgate.port('proxy'), { method: 'GET', path });
    const took = performance.now() - since;
    if (status === 402 || took > 2 * IN_FORCE_MS) return took;
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
}
