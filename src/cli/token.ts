// `tollgate token`: prints a dashboard token for the configured registry, alone, so that it can be put into a variable.
import { parseDuration, DURATION_ADVICE } from '../config/durations.ts';
import type { Args } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { CONFIG_FLAG, isKnownHere, loadWithSecrets, registryOf } from './configuration.ts';

const MAX_TTL_MS = 8760 * 3_600_000;

export const token: Command = {
  name: 'token',
  summary: 'print a JWT for the dashboard endpoints',
  usage: [
    'tollgate token [--ttl 1h] [--config FILE]',
    '',
    'Signs with registry.jwt.secret, or with the secret that the first start made.',
  ],
  examples: [
    'tollgate token --ttl 15m',
    'curl -H "Authorization: Bearer $(tollgate token)" http://127.0.0.1:8403/v1/billing/charges',
  ],
  flags: { ...CONFIG_FLAG, ttl: { value: '1h', help: 'how long it is valid (1h if left out)' } },
  words: { min: 0, max: 0 },
  run: runToken,
};

async function runToken(args: Args, io: Io): Promise<ExitCode> {
  const ttlMs = parseDuration(args.text('ttl') ?? '1h');
  if (ttlMs === undefined || ttlMs < 1000 || ttlMs > MAX_TTL_MS) {
    io.err(`--ttl: is not ${DURATION_ADVICE}, from 1s to ${MAX_TTL_MS / 3_600_000}h`);
    return EXIT.usage;
  }
  const loaded = await loadWithSecrets(args, io);
  if (!loaded.ok) return loaded.code;
  const registry = registryOf(loaded.config, io);
  if (!registry) return EXIT.usage;
  const { key, issuer, audience } = registry.jwt;
  if (key.kind !== 'secret') {
    io.err('registry.jwt has no secret: its tokens are made with the private key.');
    return EXIT.usage;
  }
  if (!isKnownHere(key.secret, io)) return EXIT.usage;
  const { mintToken } = await import('../registry/auth/dashboard-tokens.ts');
  io.out(await mintToken(key.secret, { issuer, audience, ttlSeconds: Math.floor(ttlMs / 1000), now: Date.now() }));
  return EXIT.fine;
}
