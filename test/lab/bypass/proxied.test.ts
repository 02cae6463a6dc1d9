// The short run through the real proxies of this machine, with their shipped configurations; the long one is `npm run test:proxied`.
import { describe, expect, test } from 'vitest';
import { isInstalled, PROGRAMS } from '../../support/shipped-proxy.ts';
import { casesOf } from './corpus.ts';
import { draftOf } from './draft.ts';
import { proxiedFaults, runProxied } from './proxied.ts';
import { REGRESSIONS } from './regressions.ts';
import { NPM } from './upstreams/npm.ts';

const SEED = 20_26;
const CASES = 20;
const DRAFTS = [
  ...[draftOf('GET', '/free/x'), draftOf('GET', '/v1/reports/open'), draftOf('GET', '/v1/export')],
  ...[...REGRESSIONS, ...casesOf(SEED, CASES)],
];
const installed = PROGRAMS.filter(isInstalled);
const nginx = installed.filter(({ dialect }) => dialect === 'nginx');
const common = { routers: NPM, drafts: DRAFTS, silenceMs: 1000 };

describe('nothing passes a proxy that asks', () => {
  test.runIf(installed.length > 0)(
    'attack: through no installed proxy with its shipped configuration does anything unpaid run, and what arrives is what was decided',
    async () => {
      expect(proxiedFaults(await runProxied({ ...common, programs: installed }))).toEqual([]);
    },
    120_000,
  );

  test.runIf(nginx.length > 0).each([
    ['does not ask', 'auth_request /_tg;', 'auth_request off;', 'unpaid executions'],
    ['forwards another target', 'http://app$tg_target;', 'http://app/x$tg_target;', 'not allowed as that'],
  ])(
    'behaviour: the run notices a configuration that %s',
    async (_, text, by, noticed) => {
      let edited = 0;
      const edit = (whole: string): string => {
        if (whole.includes(text)) edited++;
        return whole.replace(text, by);
      };
      const faults = proxiedFaults(await runProxied({ ...common, programs: nginx, edit }));
      expect(edited).toBeGreaterThan(0);
      expect(faults.join('\n')).toContain(noticed);
    },
    120_000,
  );
});
