// A scripted upstream, a small gateway in front of it and clients of that, for one test file: whatever a test opened is
// closed when it is over.
import { afterEach, vi } from 'vitest';
import type { End } from '../../src/gateway/outcome.ts';
import { openRaw, type RawClient } from './raw-client.ts';
import { startRawUpstream, type RawUpstream, type Script } from './raw-upstream.ts';
import { startSmallGateway, type SmallGateway, type SmallGatewayOptions } from './small-gateway.ts';

export type Stage = {
  readonly upstream: RawUpstream;
  readonly gateway: SmallGateway;
  readonly client: () => Promise<RawClient>;
};

export type Stages = {
  readonly stage: (script?: Script, options?: Partial<SmallGatewayOptions>) => Promise<Stage>;
  /** Calls `close` when the test is over; the last one given is called first. */
  readonly onEnd: (close: () => unknown) => void;
};

export const GET = 'GET /free/a HTTP/1.1\r\nHost: h\r\n\r\n';

export const head = (method: string, ...lines: string[]): string =>
  `${[`${method} /free/a HTTP/1.1`, 'Host: h', ...lines].join('\r\n')}\r\n\r\n`;

/** Called once at the top of a test file. */
export function createStages(): Stages {
  const closers: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });
  return {
    onEnd: (close) => void closers.push(close),
    stage: async (script, options = {}) => {
      const upstream = await startRawUpstream(script);
      closers.push(upstream.close);
      const gateway = await startSmallGateway({ upstream: upstream.url, ...options });
      closers.push(gateway.close);
      const client = async (): Promise<RawClient> => {
        const opened = await openRaw(gateway.port);
        closers.push(opened.close);
        return opened;
      };
      return { upstream, gateway, client };
    },
  };
}

/** What the `index`th forwarded request came to, once it is over. */
export function outcomeOf(gateway: SmallGateway, index = 0): Promise<End> {
  return vi.waitFor(
    () => {
      const outcome = gateway.outcomes[index];
      if (outcome === undefined) throw new Error('no outcome yet');
      return outcome;
    },
    { interval: 5, timeout: 30_000 },
  );
}
