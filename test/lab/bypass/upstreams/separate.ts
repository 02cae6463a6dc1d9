// Frameworks of the folder `frameworks`, a package of its own: `npm run test:bypass` installs and builds it.
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { ProfileName } from '../../../../src/domain/routing/profile.ts';
import type { UpstreamSpec } from '../upstream.ts';
import { program, type Place, type Program } from './program.ts';

const FOLDER = path.join(import.meta.dirname, '../frameworks');

/** `needs`: what is there once it is installed and built. */
function framework(
  name: string,
  profile: ProfileName | undefined,
  needs: string,
  args: (place: Place) => readonly string[],
): UpstreamSpec {
  return {
    ...program({
      name,
      ...(profile === undefined ? {} : { profile }),
      needs: [path.join(FOLDER, needs)],
      packages: '',
      program: (place): Program => ({
        command: process.execPath,
        args: args(place),
        env: { HOST: '127.0.0.1', NODE_ENV: 'production', NEXT_TELEMETRY_DISABLED: '1' },
      }),
    }),
    missing: () => (existsSync(path.join(FOLDER, needs)) ? undefined : 'npm run test:bypass installs it'),
  };
}

const app = (which: string) => (): readonly string[] => [path.join(FOLDER, 'apps.mjs'), which];
const next =
  (folder: string) =>
  ({ port }: Place): readonly string[] => [
    path.join(FOLDER, 'node_modules/next/dist/bin/next'),
    'start',
    path.join(FOLDER, folder),
    '--port',
    String(port),
    '--hostname',
    '127.0.0.1',
  ];

export const SEPARATE: readonly UpstreamSpec[] = [
  framework('connect', undefined, 'node_modules/connect', app('connect')),
  framework('tinyhttp', undefined, 'node_modules/@tinyhttp/app', app('tinyhttp')),
  framework('moleculer-web', undefined, 'node_modules/moleculer-web', app('moleculer')),
  framework('restify', 'fastify', 'node_modules/restify', app('restify')),
  framework('Nest on Express', 'express', 'node_modules/@nestjs/core', app('nest')),
  framework('Next, pages', 'next', 'next-pages/.next/BUILD_ID', next('next-pages')),
  framework('Next, app router', 'next', 'next-app/.next/BUILD_ID', next('next-app')),
  framework('SvelteKit', 'next', 'sveltekit/build/index.js', () => [path.join(FOLDER, 'sveltekit/build/index.js')]),
];
