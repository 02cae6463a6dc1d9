// Where the demo leaves the key of its payer and the address of its chain for `npm run pay`. Test money only.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Hex } from 'viem';

export type Purse = { readonly key: Hex; readonly rpcUrl: string };

const FILE = path.join(tmpdir(), `tollgate-demo-purse-${process.getuid?.() ?? 0}.json`);

export function writePurse(purse: Purse): void {
  writeFileSync(FILE, JSON.stringify(purse), { mode: 0o600 });
}

export function removePurse(): void {
  rmSync(FILE, { force: true });
}

export function readPurse(): Purse | undefined {
  try {
    return JSON.parse(readFileSync(FILE, 'utf8')) as Purse;
  } catch {
    return undefined;
  }
}
