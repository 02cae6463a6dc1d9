// Everything that the long tier runs over.
import type { UpstreamSpec } from '../upstream.ts';
import { DEBIAN } from './debian.ts';
import { SEPARATE } from './separate.ts';
import { NPM } from './npm.ts';

export const ALL: readonly UpstreamSpec[] = [...NPM, ...SEPARATE, ...DEBIAN];
