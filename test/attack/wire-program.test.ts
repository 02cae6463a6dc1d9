// The wire cases against the whole program as a process of its own, on the Node of this repository and on Node 24 where
// that one is installed (npm run test:node24), in front of a strict reader.
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { NODE_24, startWireProgram, type WireProgram } from '../support/wire-program.ts';
import { runWireCase } from './run-wire-cases.ts';
import { casesFor, WAYS } from './wire-cases.ts';

describe.each<[string, string | undefined]>([
  ['the whole program', undefined],
  ['the whole program on Node 24', NODE_24],
])('%s', (_name, node) => {
  const installed = node === undefined || existsSync(node);
  let program: WireProgram | undefined;
  let broken = 0;

  beforeAll(async () => {
    if (installed) program = await startWireProgram(node);
  });
  afterAll(async () => {
    await program?.stop();
  });

  it.skipIf(installed)('the program is installed by npm run test:node24', () => undefined);

  describe.each(installed ? WAYS : [])('%s', (how) => {
    it.each(casesFor(how))('attack: a client that sends %s harms nobody', async (_, wire) => {
      if (wire.broken === true) broken++;
      if (program !== undefined) await runWireCase(program.front, wire, how);
    });
  });

  it.runIf(installed)(
    'attack: nothing that costs something was ever asked of the upstream, and nothing that was not decided on',
    async () => {
      await program?.check(broken);
    },
  );
});
