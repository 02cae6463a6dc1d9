// The table of commands. A new one is a file of its own and a line here.
import { charges } from './charges.ts';
import { check } from './check.ts';
import type { Command } from './command.ts';
import { completionOf } from './completion.ts';
import { copy } from './copy.ts';
import { desk } from './desk.ts';
import { demo } from './demo.ts';
import { healthcheck } from './healthcheck.ts';
import { init } from './init.ts';
import { keys } from './keys.ts';
import { match } from './match.ts';
import { migrate } from './migrate.ts';
import { networks } from './networks.ts';
import { openapi } from './openapi.ts';
import { probe } from './probe.ts';
import { routes } from './routes.ts';
import { serve } from './serve.ts';
import { token } from './token.ts';
import { version } from './version.ts';
import { webhooks } from './webhooks.ts';
import { why } from './why.ts';

export const COMMANDS: readonly Command[] = [
  serve,
  init,
  check,
  match,
  probe,
  networks,
  keys,
  token,
  desk,
  healthcheck,
  openapi,
  migrate,
  copy,
  routes,
  charges,
  webhooks,
  why,
  demo,
  completionOf(() => COMMANDS),
  version,
];
