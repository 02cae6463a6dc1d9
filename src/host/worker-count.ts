// Counts the workers that `workers: auto` stands for: as many as this process may use CPUs, and has memory for. A
// container's quota counts, of its own group and of those above it; what cannot be read sets no bound.
import { readFileSync } from 'node:fs';
import os from 'node:os';

export type Machine = {
  /** CPUs as the scheduler's affinity says, or fewer; where a quota is below one CPU Node gives the CPUs of the host. */
  readonly parallelism: number;
  /** Quota of the control group, in CPUs; undefined: none, or it cannot be read. */
  readonly quota: number | undefined;
  /** Memory that all processes may use together, in bytes; undefined: no limit. */
  readonly memoryLimit: number | undefined;
};

export type WorkerPlan = {
  readonly count: number;
  readonly because: string;
  /** Heap of each worker; the primary has what Node took at its start. Undefined: that too. */
  readonly oldSpaceMiB: number | undefined;
};

export const MOST_WORKERS = 64;
const MIB = 1024 * 1024;
const MIB_A_WORKER = 256;

/** Plans the workers. `configured` is `workers` of the configuration. */
export function planWorkers(configured: number | 'auto', machine: Machine): WorkerPlan {
  if (configured !== 'auto') return { count: configured, because: 'configured', oldSpaceMiB: undefined };
  const { parallelism, quota, memoryLimit } = machine;
  const bounds: [count: number, because: string][] = [
    [parallelism, inCpus(parallelism)],
    [MOST_WORKERS, `there are ${MOST_WORKERS} at most`],
  ];
  if (quota !== undefined) bounds.unshift([Math.ceil(quota), `a quota of ${inCpus(Math.round(quota * 100) / 100)}`]);
  if (memoryLimit !== undefined) {
    const mebibytes = Math.floor(memoryLimit / MIB);
    const because = `a memory limit of ${mebibytes} MiB, one for each ${MIB_A_WORKER} MiB`;
    bounds.push([Math.floor(mebibytes / MIB_A_WORKER), because]);
  }
  const [lowest, because] = bounds.reduce((least, bound) => (bound[0] < least[0] ? bound : least));
  const count = Math.max(1, lowest);
  const oldSpaceMiB = memoryLimit === undefined || count === 1 ? undefined : oldSpaceOf(memoryLimit, count);
  return { count, because, oldSpaceMiB };
}

function inCpus(count: number): string {
  return `${count} ${count === 1 ? 'CPU' : 'CPUs'}`;
}

/** Half of a process's share, as Node takes half of the whole: the rest is for young objects, buffers, threads and code. */
function oldSpaceOf(memoryLimit: number, workers: number): number {
  return Math.max(1, Math.floor(memoryLimit / MIB / (workers + 1) / 2));
}

export function thisMachine(): Machine {
  const limit = process.constrainedMemory();
  return {
    parallelism: os.availableParallelism(),
    quota: readQuota(readText),
    memoryLimit: limit > 0 && limit < os.totalmem() ? limit : undefined,
  };
}

/** The lowest CPU quota of the control groups that this process is in, of version 2 and 1. */
export function readQuota(read: (file: string) => string | undefined): number | undefined {
  const groups = (read('/proc/self/cgroup') ?? '').split('\n').flatMap((line) => {
    const [, controllers, group] = /^\d+:([^:]*):\/(.*)$/.exec(line) ?? [];
    return controllers === '' || controllers?.split(',').includes('cpu') === true ? [group ?? ''] : [];
  });
  // The files of a container's group stand at the top, if it does not see the name of its group.
  const folders = new Set(['', ...groups.flatMap(withParents)]);
  const quotas = [...folders].flatMap((folder) => {
    const [quota, period] = (read(`/sys/fs/cgroup${folder}/cpu.max`) ?? '').split(' ').map(Number);
    const first = Number(read(`/sys/fs/cgroup/cpu${folder}/cpu.cfs_quota_us`));
    const firstPeriod = Number(read(`/sys/fs/cgroup/cpu${folder}/cpu.cfs_period_us`));
    return [Number(quota) / Number(period), first / firstPeriod].filter((cpus) => cpus > 0 && cpus < Infinity);
  });
  return quotas.length === 0 ? undefined : Math.min(...quotas);
}

/** Lists a group and those above it: `/a/b` and `/a` for `a/b`. */
function withParents(group: string): string[] {
  const names = group.split('/').filter((name) => name !== '');
  return names.map((_, index) => `/${names.slice(0, index + 1).join('/')}`);
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
