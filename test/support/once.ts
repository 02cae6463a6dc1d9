// Before the first test file of a process. Vitest evaluates its setup files again before every file, and what they import
// once: what changes a module for good must not be done twice where several files share a process.
await import('./no-network.ts');
await import('./patience.ts');
