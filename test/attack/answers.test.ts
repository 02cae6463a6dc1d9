// Every answer case over both ways to the upstream and to old clients, in one packet and byte by byte, and cut in two at
// every place (with TOLLGATE_WIRE=long; else at as many as the time allows).
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cuts, inParallel, LONG, startWireLab, type WireLab, LONG_MS } from '../support/wire-lab.ts';
import { ANSWER_CASES } from './answer-cases.ts';
import { runAnswerCase, type Way } from './run-answer-cases.ts';

// Longer ones are cut into pieces instead.
const TRICKLED_BYTES = 1000;

describe.each<[string, Way['by']]>([
  ['forwarded', 'forward'],
  ['forwarded for a client of HTTP/1.0', 'http10'],
  ['to a handshake', 'upgrade'],
])('%s', (_, by) => {
  let lab: WireLab;
  beforeAll(async () => {
    lab = await startWireLab();
  });
  afterAll(async () => {
    lab.check();
    await lab.close();
  });

  const cases = ANSWER_CASES.filter(({ method }) => by !== 'upgrade' || method === undefined).map(
    (wanted) => [wanted.name, wanted] as const,
  );

  it.each(cases)('attack: an upstream that answers with %s harms nobody', async (_name, wanted) => {
    await runAnswerCase(lab, wanted, { by, cut: [] });
  });

  it.each(cases)('attack: an upstream that answers with %s, byte by byte, harms nobody', async (_name, wanted) => {
    const { length } = wanted.answer;
    const pieces = Array.from({ length: 60 }, (__, i) => Math.floor((length * (i + 1)) / 61));
    await runAnswerCase(lab, wanted, { by, cut: length <= TRICKLED_BYTES ? 'everywhere' : pieces });
  });

  it.runIf(by !== 'http10' || LONG).each(cases)(
    'attack: an upstream that answers with %s, cut in two, harms nobody',
    async (_name, wanted) => {
      const stray = wanted.stray?.length ?? 0;
      const places = cuts(wanted.answer.length + stray, 0, 12);
      await inParallel(places, 12, (place) => runAnswerCase(lab, wanted, { by, cut: [place] }));
    },
    LONG_MS,
  );

  it('behaviour: the table of cases is as long as it says', () => {
    expect(cases.length).toBeGreaterThan(150);
  });
});
