// What the registry says about itself, to anyone: that it is there, and which interface it serves.
import { answerJson, JSON_TYPE, type EndpointCall, type EndpointOutcome } from './endpoint.ts';
import type { Services } from './services.ts';

export function serveHealth(_call: EndpointCall, { version, clock }: Services): EndpointOutcome {
  return answerJson(200, { status: 'ok', version, timestamp: new Date(clock.now()).toISOString() });
}

export function serveDocument(_call: EndpointCall, { document }: Services): EndpointOutcome {
  return { kind: 'answer', status: 200, headers: ['Content-Type', JSON_TYPE], body: document };
}
