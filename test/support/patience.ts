// Runs before test files: what a test waits for may take as long as a busy machine needs. Vitest's own second is less
// than a process takes to start beside other load.
import { vi } from 'vitest';

const PATIENCE_MS = 30_000;

const { waitFor, waitUntil } = vi;
vi.waitFor = (callback, options) =>
  waitFor(callback, typeof options === 'number' ? options : { timeout: PATIENCE_MS, ...options });
vi.waitUntil = (callback, options) =>
  waitUntil(callback, typeof options === 'number' ? options : { timeout: PATIENCE_MS, ...options });
