// What a start asks of facilitators, nodes and the upstream: each wrong thing is one warning, stands in readiness until it is
// mended, and is asked about again only when readiness is. Real servers on loopback, a clock by hand.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { checkServices, type ServicesCheck } from '../../src/compose/services-check.ts';
import { systemSchedule } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import { ADDRESS, configOf } from '../config/support.ts';
import { freePort } from '../support/free-port.ts';

const SOLANA = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG';
const BASE_SEPOLIA = { x402Version: 2, scheme: 'exact', network: 'eip155:84532' };

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

type Service = { url: string; host: string; answer: () => unknown; asked: string[] };

/** Answers every call with what `answer` returns; undefined: never. */
async function serve(answer: () => unknown, port = 0): Promise<Service> {
  const service: Service = { url: '', host: '', answer, asked: [] };
  const server = createServer((req, res) => {
    service.asked.push(`${req.method} ${req.url}`);
    const body = service.answer();
    if (body !== undefined) res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }).listen(port, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  service.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  service.url = `http://${service.host}`;
  return service;
}

const chain = (id: number): unknown => ({ jsonrpc: '2.0', id: 1, result: `0x${id.toString(16)}` });
const lists = (...kinds: unknown[]): unknown => ({ kinds, extensions: [], signers: {} });

type Watched = ServicesCheck & { said: string[]; detail: () => Promise<string>; pass: (ms: number) => void };

function watch(text: string): Watched {
  const said: string[] = [];
  let now = 0;
  const log = createLog(
    'info',
    (line) => {
      const { level, msg } = JSON.parse(line) as { level: string; msg: string };
      said.push(`${level} ${msg}`);
    },
    Date.now,
  );
  const clock = { now: Date.now, monotonic: () => now };
  const config = configOf(text);
  const deps = { log, clock, schedule: systemSchedule, authorize: () => Promise.resolve('Bearer x') };
  const services = checkServices(() => config, deps);
  const detail = async (): Promise<string> => {
    const { ok, isTolerated, detail: sentence } = await services.check.run();
    return `${ok ? 'ok' : isTolerated === true ? 'tolerated' : 'fails'}: ${sentence}`;
  };
  return { ...services, said, detail, pass: (ms) => void (now += ms) };
}

const way = (facilitators: readonly string[], rpc: string, network = 'base-sepolia'): string =>
  `{ network: ${network}, pay_to_address: "${network === 'base-sepolia' ? ADDRESS : SOLANA}", facilitators: [${facilitators.map((url) => `"${url}"`).join(', ')}], rpc_url: ${rpc === 'none' ? rpc : `"${rpc}"`} }`;
const configWith = (upstream: string, ...ways: string[]): string =>
  `proxy: { upstream: "${upstream}" }\nregistry: {}\nreceivers: [{ id: default, accepts: [${ways.join(', ')}] }]\n`;

test('behaviour: a service that answers as it should is no warning, and every one is asked once', async () => {
  const facilitator = await serve(() => lists(BASE_SEPOLIA));
  const node = await serve(() => chain(84_532));
  const services = watch(configWith(node.url, way([facilitator.url], node.url)));
  expect(await services.detail()).toBe('ok: facilitators, nodes and upstream have not all answered yet');
  await services.ask();
  expect([services.said, facilitator.asked, node.asked]).toEqual([[], ['GET /supported'], ['POST /']]);
  expect(await services.detail()).toMatch(/^ok: facilitators, nodes and upstream were as they should be at \d{4}-/);
});

test('behaviour: each wrong thing about a service is one warning, and readiness tolerates and names it', async () => {
  const other = await serve(() => lists({ ...BASE_SEPOLIA, network: 'eip155:1' }));
  const mainnet = await serve(() => chain(8453));
  const dead = `127.0.0.1:${await freePort()}`;
  const services = watch(
    configWith(
      `http://${dead}`,
      way([other.url], mainnet.url),
      way([`http://${dead}/path-that-is-a-key`], 'none', 'solana-devnet'),
    ),
  );
  await services.ask();
  expect(services.said.toSorted()).toEqual([
    `warn receiver default: no facilitator of it (${other.host}) lists exact on eip155:84532, so payments there are refused; name one that does`,
    `warn the facilitator ${dead} did not say what it supports: it cannot be reached (ECONNREFUSED)`,
    `warn the node ${mainnet.host} is of eip155:8453, and its receiver is on eip155:84532; correct rpc_url`,
    `warn the upstream http://${dead} takes no connection (ECONNREFUSED); requests are answered 502 until it does`,
  ]);
  const detail = await services.detail();
  expect(detail).toMatch(/^tolerated: /);
  for (const sentence of services.said) expect(detail).toContain(sentence.replace('warn ', ''));
  expect(detail).not.toContain('path-that-is-a-key');
  await services.ask();
  expect(services.said).toHaveLength(4);
});

test('behaviour: a way that one of its facilitators lists, or may list, is no warning of its own', async () => {
  const none = await serve(() => lists());
  const takes = await serve(() => lists(BASE_SEPOLIA));
  const fine = watch(configWith(takes.url, way([none.url, takes.url], 'none')));
  await fine.ask();
  expect(fine.said).toEqual([]);
  const dead = `127.0.0.1:${await freePort()}`;
  const unknown = watch(configWith(takes.url, way([none.url, `http://${dead}`], 'none')));
  await unknown.ask();
  expect(unknown.said).toEqual([expect.stringContaining(`the facilitator ${dead} did not say what it supports`)]);
});

test('behaviour: a way on Solana that no facilitator lists is a warning too, and so is its node’s network', async () => {
  const facilitator = await serve(() => lists(BASE_SEPOLIA));
  const node = await serve(() => ({ jsonrpc: '2.0', id: 1, result: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d' }));
  const services = watch(configWith(node.url, way([facilitator.url], node.url, 'solana-devnet')));
  await services.ask();
  expect(services.said.toSorted()).toEqual([
    expect.stringMatching(/^warn receiver default: no facilitator of it \(.*\) lists exact on solana:EtWTRAB/),
    expect.stringMatching(/^warn the node 127\.0\.0\.1:\d+ is of solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp, and/),
  ]);
});

test('behaviour: a wrong service is asked again when readiness is, ever more seldom, until it is mended', async () => {
  const facilitator = await serve(() => lists());
  const node = await serve(() => chain(84_532));
  const services = watch(configWith(node.url, way([facilitator.url], node.url)));
  await services.ask();
  expect([services.said.length, facilitator.asked.length]).toEqual([1, 1]);
  // A process that nobody asks, asks nobody; and one that is asked all the time asks after ten seconds.
  services.pass(9_999);
  await services.detail();
  services.pass(1);
  expect(facilitator.asked).toHaveLength(1);
  await services.detail();
  await expect.poll(() => facilitator.asked.length).toBe(2);
  await expect.poll(async () => (services.pass(20_000), await services.detail(), facilitator.asked.length)).toBe(3);
  facilitator.answer = () => lists(BASE_SEPOLIA);
  await expect
    .poll(async () => (services.pass(300_000), await services.detail()))
    .toMatch(/^ok: facilitators, nodes and upstream were as they should be/);
  expect(services.said.slice(1)).toEqual(['info mended']);
  // What was right was asked once, at the start.
  expect(node.asked).toHaveLength(1);
  const { length } = facilitator.asked;
  services.pass(3_600_000);
  await services.detail();
  expect(facilitator.asked).toHaveLength(length);
});

test('behaviour: a wrong service is told at once, whoever else does not answer', async () => {
  const silent = await serve(() => undefined);
  const dead = `127.0.0.1:${await freePort()}`;
  const services = watch(configWith(`http://${dead}`, way([silent.url], 'none')));
  const asked = services.ask();
  await expect.poll(() => services.said).toEqual([expect.stringContaining(`the upstream http://${dead} takes no`)]);
  expect(await services.detail()).toMatch(/^tolerated: the upstream .* until it does$/);
  services.close();
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
  await asked;
});

test('behaviour: a check of services says nothing after its end, whatever answers then', async () => {
  const silent = await serve(() => undefined);
  const services = watch(configWith(silent.url, way([silent.url], 'none')));
  const asked = services.ask();
  await expect.poll(() => silent.asked.length).toBe(1);
  services.close();
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
  await asked;
  expect(services.said).toEqual([]);
});
