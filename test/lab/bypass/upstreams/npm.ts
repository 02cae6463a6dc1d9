// Every upstream that comes with the development dependencies: all of them run in the process of the suite.
import type { UpstreamSpec } from '../upstream.ts';
import { EXPRESS } from './express.ts';
import { FASTIFY } from './fastify.ts';
import { RAW } from './raw.ts';
import { SMALL } from './small.ts';

export const NPM: readonly UpstreamSpec[] = [...EXPRESS, ...FASTIFY, ...SMALL, ...RAW];
