// A value that may have to be waited for: a request that need not wait meets no await.

/** What `then` makes of a value that may have to be waited for. */
export function whenKnown<T, U>(value: T | Promise<T>, then: (known: T) => U | Promise<U>): U | Promise<U> {
  return value instanceof Promise ? value.then(then) : then(value);
}
