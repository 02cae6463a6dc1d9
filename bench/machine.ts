// What the numbers were measured on. A figure without its machine is worth nothing.
import { availableParallelism, cpus, release, totalmem } from 'node:os';
import { canPin } from './process.ts';

export type Machine = {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly kernel: string;
  readonly node: string;
  /** Whether servers and load had cores of their own. */
  readonly pinned: boolean;
};

export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    node: process.version,
    pinned: canPin(),
  };
}
