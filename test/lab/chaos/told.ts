// An endpoint of webhooks for a run: it refuses, cuts, forgets and stalls while it is restless, and keeps what it took.
import { startWebhookReceiver, type Taken, type Verdict } from '../../support/webhook-receiver.ts';
import { noteWeather, type Journal } from './journal.ts';
import type { Part } from './weather.ts';

export const ENDPOINT = 'chaos';
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

export type Told = {
  /** For the configuration of whoever keeps charges. */
  readonly config: string;
  readonly weather: Part;
  readonly taken: readonly Taken[];
  /** What was wrong with a delivery itself. */
  readonly wrong: readonly string[];
  readonly close: () => void;
};

const MOODS: readonly [Verdict, ...Verdict[]] = ['take', 'take', 'refuse', 'cut', 'forget', 'stall'];

export async function startTold(journal: Journal): Promise<Told> {
  let mood: Verdict = 'take';
  const receiver = await startWebhookReceiver([SECRET], () => {
    if (mood !== 'take') noteWeather(journal, `webhooks: the endpoint is told to ${mood}`);
    return mood;
  });
  return {
    config: `webhooks: [{ id: ${ENDPOINT}, url: "${receiver.url}", secret: "${SECRET}", events: ["*", charge.claimed], timeout: 1s, allow_private: true }]`,
    weather: {
      turn: (draw) => {
        mood = draw.pick(MOODS);
        return 50 + draw.below(350);
      },
      calm: () => {
        mood = 'take';
      },
    },
    ...{ taken: receiver.taken, wrong: receiver.wrong, close: receiver.close },
  };
}
