// How many workers `auto` stands for, whatever bounds this process: affinity, quotas of control groups, memory.
import { describe, expect, test } from 'vitest';
import { planWorkers, readQuota, thisMachine, type Machine } from '../../src/host/worker-count.ts';

const GIB = 1024 ** 3;
const machine = (given: Partial<Machine>): Machine => ({
  parallelism: 8,
  quota: undefined,
  memoryLimit: undefined,
  ...given,
});

describe('auto', () => {
  test.each<[string, Partial<Machine>, number, string, number | undefined]>([
    ['as many as CPUs', {}, 8, '8 CPUs', undefined],
    ['one CPU', { parallelism: 1 }, 1, '1 CPU', undefined],
    ['a quota below the CPUs', { quota: 3 }, 3, 'a quota of 3 CPUs', undefined],
    ['a quota is rounded up', { quota: 2.001 }, 3, 'a quota of 2 CPUs', undefined],
    [
      'a quota below one CPU, where Node says the CPUs of the host',
      { quota: 0.25 },
      1,
      'a quota of 0.25 CPUs',
      undefined,
    ],
    ['a quota of all CPUs', { quota: 8 }, 8, 'a quota of 8 CPUs', undefined],
    ['a quota above the CPUs', { quota: 16 }, 8, '8 CPUs', undefined],
    ['an affinity below the quota', { parallelism: 2, quota: 4 }, 2, '2 CPUs', undefined],
    ['plenty of memory', { memoryLimit: 9 * GIB }, 8, '8 CPUs', 512],
    ['memory for two', { memoryLimit: 0.74 * GIB }, 2, 'a memory limit of 757 MiB, one for each 256 MiB', 126],
    ['memory for one', { memoryLimit: 0.25 * GIB }, 1, 'a memory limit of 256 MiB, one for each 256 MiB', undefined],
    [
      'memory for less than one',
      { memoryLimit: 0.1 * GIB },
      1,
      'a memory limit of 102 MiB, one for each 256 MiB',
      undefined,
    ],
    ['more CPUs than workers may be', { parallelism: 128 }, 64, 'there are 64 at most', undefined],
  ])('behaviour: auto plans workers by the machine: %s', (_, given, count, because, oldSpaceMiB) => {
    expect(planWorkers('auto', machine(given))).toEqual({ count, because, oldSpaceMiB });
  });

  test('behaviour: a number of workers is that number, whatever the machine is', () => {
    const plan = planWorkers(5, machine({ parallelism: 1, quota: 0.5, memoryLimit: 1 }));
    expect(plan).toEqual({ count: 5, because: 'configured', oldSpaceMiB: undefined });
  });

  test('behaviour: auto makes one worker at least on this machine', () => {
    expect(planWorkers('auto', thisMachine()).count).toBeGreaterThanOrEqual(1);
  });
});

describe('the quota of control groups', () => {
  const SELF = '/proc/self/cgroup';
  const V2 = '/sys/fs/cgroup';
  const V1 = '/sys/fs/cgroup/cpu';
  const V1_SELF = '12:pids:/docker/abc\n4:cpu,cpuacct:/docker/abc\n3:cpuset:/other\n1:name=systemd:/\n';
  const v1 = (folder: string, quota: number): Record<string, string> => ({
    [`${V1}${folder}/cpu.cfs_quota_us`]: `${quota}\n`,
    [`${V1}${folder}/cpu.cfs_period_us`]: '100000\n',
  });

  test.each<[string, Record<string, string>, number | undefined]>([
    ['nothing can be read', {}, undefined],
    ['version 2, seen from inside', { [SELF]: '0::/\n', [`${V2}/cpu.max`]: '150000 100000\n' }, 1.5],
    ['version 2, no quota', { [SELF]: '0::/\n', [`${V2}/cpu.max`]: 'max 100000\n' }, undefined],
    ['version 2, the file is gone', { [SELF]: '0::/a.slice/b\n' }, undefined],
    ['version 2, of this group', { [SELF]: '0::/a.slice/b\n', [`${V2}/a.slice/b/cpu.max`]: '50000 100000\n' }, 0.5],
    [
      'version 2, a lower one above this group',
      {
        [SELF]: '0::/a/b\n',
        [`${V2}/a/b/cpu.max`]: '400000 100000\n',
        [`${V2}/a/cpu.max`]: '200000 100000\n',
        [`${V2}/cpu.max`]: '300000 100000\n',
      },
      2,
    ],
    ['the own group cannot be read, the top can', { [`${V2}/cpu.max`]: '100000 50000' }, 2],
    ['version 1', { [SELF]: V1_SELF, ...v1('/docker/abc', 250_000) }, 2.5],
    ['version 1, seen from inside', { [SELF]: V1_SELF, ...v1('', 25_000) }, 0.25],
    ['version 1, no quota', { [SELF]: V1_SELF, ...v1('/docker/abc', -1) }, undefined],
    ['version 1, a group of another controller', { [SELF]: V1_SELF, ...v1('/other', 100_000) }, undefined],
    ['version 1, without a period', { [SELF]: V1_SELF, [`${V1}/cpu.cfs_quota_us`]: '100000\n' }, undefined],
    ['what is no number', { [SELF]: '0::/\n', [`${V2}/cpu.max`]: 'many of them\n' }, undefined],
    ['a period of nothing', { [SELF]: '0::/\n', [`${V2}/cpu.max`]: '100000 0\n' }, undefined],
    ['an empty file', { [SELF]: '0::/\n', [`${V2}/cpu.max`]: '' }, undefined],
  ])('behaviour: the quota of control groups is read: %s', (_, files, quota) => {
    expect(readQuota((file) => files[file])).toBe(quota);
  });
});
