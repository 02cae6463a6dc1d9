// The proxy's forwarding half, and `sync.listen`, which relays with http-proxy-3.
import { startRelayStage } from '../../gateway/sync/relay/relay-stage.ts';
import { startSmallGateway } from '../../support/small-gateway.ts';
import type { FrontKind } from './fronts.ts';

const METHODS = ['GET', 'GET', 'POST', 'POST', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const;

export const PROXY: FrontKind = {
  name: 'proxy',
  draws: { methods: [...METHODS], statuses: [200, 200, 200, 201, 204, 206, 304, 400, 404, 500, 503, 599] },
  start: async (upstream) => {
    const gateway = await startSmallGateway({ upstream });
    return {
      port: gateway.port,
      target: (token) => `/free/${token}`,
      lines: async () => [],
      expected: { failureStatus: 502, passes: [103] },
      close: gateway.close,
    };
  },
};

export const SYNC: FrontKind = {
  name: 'sync',
  // 502 to 504 would say that the registry is away.
  draws: { methods: [...METHODS], statuses: [200, 200, 200, 201, 204, 304, 400, 401, 404, 422, 500] },
  start: async (upstream) => {
    const stage = await startRelayStage(upstream.origin, {
      good: false,
      timeouts: { connectMs: 5000, headersMs: 5000 },
    });
    return {
      port: stage.port,
      target: (token) => `/v1/${token}`,
      lines: async () => ['Authorization: Bearer somebody'],
      expected: { failureStatus: 503, passes: [] },
      close: stage.close,
    };
  },
};
