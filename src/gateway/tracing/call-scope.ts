// The traced request on whose account something runs, through every promise of its payment. Only payments run in a scope.
// One without a trace runs in an empty one: a socket that a traced request opened still runs its events in that one's.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { CallSpan, RequestSpan } from './request-span.ts';
import type { Attribute } from '../../host/otlp/span.ts';

type Scope = { readonly span: RequestSpan; readonly parentId: string };
/** A call that begins. */
type Call = { readonly kind: 'client' | 'internal'; readonly name: string; readonly attributes: readonly Attribute[] };

export type CallScope = {
  /** The request of this scope; undefined: it is not traced. */
  readonly span: () => RequestSpan | undefined;
  readonly run: <T>(span: RequestSpan | undefined, task: () => T) => T;
  /** Begins a span in this scope; undefined: nothing is traced here. */
  readonly begin: (call: Call) => CallSpan | undefined;
  /** Runs `task` below `call`. */
  readonly below: <T>(call: CallSpan, task: () => T) => T;
};

export function createCallScope(): CallScope {
  const scopes = new AsyncLocalStorage<Scope | undefined>();
  return {
    span: () => scopes.getStore()?.span,
    run: (span, task) => scopes.run(span && { span, parentId: span.spanId }, task),
    begin: (call) => {
      const scope = scopes.getStore();
      return scope?.span.begin({ ...call, parentId: scope.parentId });
    },
    below: ({ spanId }, task) => {
      const scope = scopes.getStore();
      return scope === undefined ? task() : scopes.run({ span: scope.span, parentId: spanId }, task);
    },
  };
}
