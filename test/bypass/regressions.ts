// Requests that once got through, or would have, each as small as it can be. They run against every upstream, in every
// run. Data only; the comment on each says who was reached and why.
import { draftOf, type Draft } from './draft.ts';

export const REGRESSIONS: readonly Draft[] = [
  draftOf('GET', '/v1/export'),
];
