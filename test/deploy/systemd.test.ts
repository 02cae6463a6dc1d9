// config/tollgate.service against the program: its commands exist, it gives the drain its time, it may write where it
// tells people to put things. Where systemd is installed it reads the unit too.
import { execFileSync, spawnSync } from 'node:child_process';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readArgs } from '../../src/cli/args.ts';
import { EXIT } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { formatProblem } from '../../src/config/problems.ts';
import { readConfig } from '../../src/config/load.ts';
import { temporaryFolder } from '../support/process.ts';
import { drainMs, packageFile, readText, ROOT, VALUES } from './support.ts';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';

const text = readText('config/tollgate.service');
const settings = text.split('\n').flatMap((line): [string, string][] => {
  const [, key, value] = /^([A-Za-z]+)=(.*)$/.exec(line) ?? [];
  return key === undefined || value === undefined ? [] : [[key, value]];
});
const setting = (name: string): string | undefined => settings.find(([key]) => key === name)?.[1];

describe('the unit', () => {
  test('behaviour: the unit starts a command of the package, with flags that it has', () => {
    const [program, name, ...flags] = (setting('ExecStart') ?? '').split(' ');
    expect(Object.keys(packageFile.bin)).toEqual([program]);
    const command = COMMANDS.find((candidate) => candidate.name === name);
    expect(command?.name).toBe('serve');
    expect(readArgs(flags, command?.flags ?? {}, command?.words ?? { min: 0, max: 0 }).ok).toBe(true);
  });

  test('behaviour: the unit gives a drain its time, and sends one signal only', () => {
    const loaded = readConfig('proxy: { upstream: "http://127.0.0.1:1" }\nregistry: {}\n', {
      file: 't.yaml',
      path: '/etc/tollgate/tollgate.yaml',
      env: {},
      networks: NETWORKS,
    });
    if (!loaded.ok) throw new Error(loaded.problems.map(formatProblem).join('\n'));
    const drain = loaded.config.proxy === undefined ? Number.NaN : drainMs(loaded.config.proxy.timeouts);
    expect(Number(setting('TimeoutStopSec')) * 1000).toBeGreaterThan(drain);
    expect([setting('KillSignal'), setting('KillMode')]).toEqual(['SIGTERM', 'mixed']);
    expect(setting('ExecReload')).toBe('kill -HUP $MAINPID');
    const { limits } = loaded.config.proxy ?? { limits: { connections: Number.NaN, inFlight: Number.NaN } };
    expect(Number(setting('LimitNOFILE'))).toBeGreaterThan(limits.connections + limits.inFlight);
  });

  test('behaviour: the unit does not try again what cannot work', () => {
    expect(setting('Restart')).toBe('on-failure');
    expect(setting('RestartPreventExitStatus')).toBe(String(EXIT.usage));
  });

  test('behaviour: the unit may write to the folder that its first lines name, and nowhere else', () => {
    const folder = `/var/lib/${setting('StateDirectory')}`;
    expect(setting('WorkingDirectory')).toBe(folder);
    expect(setting('ProtectSystem')).toBe('strict');
    expect(settings.map(([key]) => key)).not.toContain('ReadWritePaths');
    for (const [, kept] of text.matchAll(/`(?:store|snapshot_file): (?:sqlite:)?([^`]+)`/g)) {
      expect(path.dirname(kept ?? '')).toBe(folder);
    }
    // V8 would not start.
    expect(setting('MemoryDenyWriteExecute')).toBe(undefined);
  });

  test('behaviour: all-in-one.yaml, edited as the first lines say, loads where it is put', () => {
    const place = /TOLLGATE_CONFIG=(\S+)/.exec(setting('Environment') ?? '')?.[1] ?? '';
    expect(text).toContain(`cp config/all-in-one.yaml ${place}`);
    const edited = readText('config/all-in-one.yaml').replace(
      'sqlite:data/tollgate.db',
      'sqlite:/var/lib/tollgate/tollgate.db',
    );
    const loaded = readConfig(edited, { file: 'tollgate.yaml', path: place, env: VALUES, networks: NETWORKS });
    expect(loaded.ok && loaded.config.registry?.store.name).toBe('/var/lib/tollgate/tollgate.db');
    expect(text).toContain(`tollgate-${packageFile.version}.tgz`);
  });
});

const systemd = spawnSync('systemd-analyze', ['--version']).status === 0;

describe.skipIf(!systemd)('systemd (skipped where systemd-analyze is not installed)', () => {
  const folder = temporaryFolder();
  afterAll(folder.remove);
  // The program need not be installed here; any that is takes its place.
  const file = folder.write('tollgate.service', text.replace(/^ExecStart=tollgate/m, 'ExecStart=/bin/true'));

  test('behaviour: systemd reads the unit without a complaint', () => {
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    expect([status, stderr.split('\n').filter((line) => line.includes('tollgate'))]).toEqual([0, []]);
  });

  test('behaviour: systemd finds the unit well protected', () => {
    const args = ['security', '--offline=yes', '--no-pager', file];
    const rated = execFileSync('systemd-analyze', args, { encoding: 'utf8' });
    expect(Number(/exposure level for \S+: ([\d.]+)/.exec(rated)?.[1])).toBeLessThan(2);
  });
});
