// What the registry says about itself, to anyone: that it is there, and which interface it serves.
import { answerJson, JSON_TYPE, type Call, type Outcome } from './endpoint.ts';
import type { Services } from './services.ts';

export function serveHealth(_call: Call, { version, clock }: Services): Outcome {
  return answerJson(200, { status: 'ok', version, timestamp: new Date(clock.now()).toISOString() });
}

export function serveDocument(_call: Call, { document }: Services): Outcome {
  return { kind: 'answer', status: 200, headers: ['Content-Type', JSON_TYPE], body: document };
}
