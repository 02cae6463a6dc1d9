// Time of the processor, in place of that of the clock: what other programs of the machine take is none of a test's.

/** Milliseconds of the processor that this thread has had so far. */
export function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
