// A worker's part of the limits of its process: rounded up, so that none is 0 that was not, and nothing else is changed.
import { expect, test } from 'vitest';
import { shareOf } from '../../../src/compose/workers/worker-shares.ts';
import type { Config } from '../../../src/config/config.ts';
import { ADDRESS, configOf } from '../../config/support.ts';

const TEXT = `proxy:
  upstream: "http://127.0.0.1:3000"
  limits: { connections: 20001, in_flight: 10, payments: 1, in_flight_per_client: 7, payments_per_client: 7, headers: 2048 }
registry: { limits: { connections: 9 } }
receivers:
  - id: a
    accepts:
      - { network: base, pay_to_address: "${ADDRESS}" }
      - { network: base-sepolia, pay_to_address: "${ADDRESS}" }
    facilitators: [{ url: "https://a.example", limits: { calls: 5, waiting: 0 } }, "https://b.example"]
`;

const resolved = configOf(TEXT) as unknown as Config;

test('behaviour: workers share the connections, requests and payments of the process, and the calls of each facilitator', () => {
  const { proxy, front, receivers, ...rest } = shareOf(resolved, 3);
  expect(proxy).toEqual({
    ...resolved.proxy,
    limits: { ...resolved.proxy?.limits, connections: 6667, inFlight: 4, payments: 1 },
  });
  expect(front?.limits).toEqual(proxy?.limits);
  for (const way of receivers[0]?.ways ?? [])
    expect(way.facilitators.map(({ limits }) => limits)).toEqual([
      { calls: 2, waiting: 0 },
      { calls: 171, waiting: 171 },
    ]);
  expect(receivers[0]?.ways).toHaveLength(2);
  const { proxy: _proxy, front: _front, receivers: _receivers, ...others } = resolved;
  expect(rest).toEqual(others);
});

test('behaviour: one worker alone has the whole share', () => {
  expect(shareOf(resolved, 1)).toEqual(resolved);
});
