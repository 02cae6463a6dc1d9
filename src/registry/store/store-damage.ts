// The error of a store that cannot be read at all. It stands alone, because the threads of a store throw it and load nothing
// else for it.

/** Error of a damaged store. Its message says what is damaged and what to do. */
export class StoreDamaged extends Error {
  override readonly name = 'StoreDamaged';
}
