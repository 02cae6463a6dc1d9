// Ids, codes and keys of the desk: 256 random bits each, of which stores keep the SHA-256.
import { hash, timingSafeEqual } from 'node:crypto';
import type { Random } from '../../host/clock.ts';

const BYTES = 32;

export function makeCode(random: Random): string {
  return random(BYTES).toString('base64url');
}

export function digestOf(code: string): Buffer {
  return hash('sha256', code, 'buffer');
}

/** Whether `code` is the one with this digest, in the same time for all that are not. */
export function isCodeOf(code: string, digest: Buffer): boolean {
  return timingSafeEqual(digestOf(code), digest);
}
