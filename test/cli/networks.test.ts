// `tollgate networks`: what people and programs read of the table.
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { fakeIo } from './support.ts';

async function run(...argv: string[]): Promise<{ code: number; lines: string[]; stderr: string }> {
  const io = fakeIo();
  const code = await runCommandLine(['networks', ...argv], COMMANDS, io);
  return { code, lines: io.stdout().trimEnd().split('\n'), stderr: io.stderr() };
}

describe('tollgate networks', () => {
  test('behaviour: tollgate networks prints a row for each network and token, Solana among them', async () => {
    const { code, lines } = await run();
    expect(code).toBe(0);
    expect(lines[0]).toMatch(/^NAME +KIND +TOKEN +ADDRESS +DECIMALS$/);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
    expect(lines.filter((line) => line.startsWith('celo ')).map((line) => line.split(/ +/)[2])).toEqual([
      'USDC',
      'USDT',
      'USAT',
    ]);
    expect(lines.some((line) => line.startsWith('solana-devnet '))).toBe(true);
    expect(lines.length).toBeGreaterThan(35);
  });

  test('behaviour: tollgate networks prints one network, by any of its names', async () => {
    const named = await run('base');
    expect(named.code).toBe(0);
    expect(named.lines).toEqual([
      'base USDC',
      ...['  kind: main', '  CAIP-2: eip155:8453', '  x402 v1: base'],
      ...['  address: 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', '  decimals: 6', '  EIP-712: USD Coin / 2'],
      ...['  native: ETH', '  rpc: https://mainnet.base.org', '  rpc: https://base-rpc.publicnode.com'],
      '  explorer: https://basescan.org',
    ]);
    expect((await run('eip155:8453')).lines).toEqual(named.lines);
  });

  test('behaviour: whatever is printed of any network fits 100 columns', async () => {
    const names = (JSON.parse((await run('--json')).lines.join('')) as { name: string }[]).map(({ name }) => name);
    for (const name of new Set(names))
      for (const line of (await run(name)).lines) expect(line.length, line).toBeLessThanOrEqual(100);
  });

  test('behaviour: networks --json is a list for programs', async () => {
    const { lines } = await run('base-sepolia', '--json');
    expect(JSON.parse(lines.join(''))).toEqual([
      {
        name: 'base-sepolia',
        v1: 'base-sepolia',
        caip2: 'eip155:84532',
        testnet: true,
        symbol: 'USDC',
        address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
        decimals: 6,
        eip712: { name: 'USDC', version: '2' },
        native_currency: { name: 'Sepolia Ether', symbol: 'ETH', decimals: 18 },
        rpc_urls: ['https://sepolia.base.org', 'https://base-sepolia-rpc.publicnode.com'],
        explorer: 'https://sepolia.basescan.org',
      },
    ]);
    const [solana] = JSON.parse((await run('solana-mainnet', '--json')).lines.join('')) as Record<string, unknown>[];
    expect(solana).toMatchObject({ name: 'solana', symbol: 'USDC', decimals: 6, eip712: null });
    const [bare] = JSON.parse((await run('sepolia', '--json')).lines.join('')) as Record<string, unknown>[];
    expect(bare).toMatchObject({ name: 'sepolia', v1: null, symbol: null, address: null });
  });

  test('refuses: a network whose name is not known, with the likely meant', async () => {
    expect(await run('base-sepola')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('did you mean base-sepolia?'),
    });
    expect(await run('nowhere')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('`tollgate networks` lists'),
    });
  });
});
