// Messages between a process and the thread that makes its publication. Routes cross as text: a string is copied at
// once, an object member by member.
import type { MadePublication, PublicationSettings, TakenPath } from '../../domain/discovery/publication.ts';
import type { SaleRoute, SampleRequest } from '../../domain/discovery/sold-operations.ts';
import type { Route } from '../../domain/routing/route.ts';

/** Task that the thread is given at its start. `owner`: JSON of an OwnerDocument. */
export type PublicationTask = {
  readonly settings: Omit<PublicationSettings, 'exclude'>;
  /** Patterns as they are written. */
  readonly exclude: readonly string[];
  readonly owner: string | undefined;
};

export type PublicationJob =
  /** Routes as `text` of `writeRoutes`. */
  | { readonly kind: 'routes'; readonly text: string; readonly isLast: boolean }
  /** Answers to the questions that were asked last, one for each. */
  | {
      readonly kind: 'winners';
      readonly winners: readonly (Route | undefined)[];
      readonly taken: readonly TakenPath[];
    };

export type PublicationReply =
  | { readonly kind: 'questions'; readonly questions: readonly SampleRequest[] }
  | { readonly kind: 'made'; readonly made: MadePublication };

/** No part of a line but the pattern, which is the last, can hold a space, and none a line end. */
export function writeRoutes(routes: readonly SaleRoute[]): string {
  return routes
    .map(
      ({ id, method, pattern, isActive, isPayable }) =>
        `${id} ${method} ${Number(isActive)}${Number(isPayable)} ${pattern}`,
    )
    .join('\n');
}

export function readRoutes(text: string): readonly SaleRoute[] {
  if (text === '') return [];
  return text.split('\n').map((line) => {
    const [id = '', method = '', flags = ''] = line.split(' ', 3);
    const pattern = line.slice(id.length + method.length + flags.length + 3);
    return { id, method, pattern, isActive: flags.startsWith('1'), isPayable: flags.endsWith('1') };
  });
}
