// A store that cannot be read at all. A file of its own: threads of a store throw it, and load nothing else for it.

/** Its message says what is damaged and what to do. */
export class StoreDamaged extends Error {
  override readonly name = 'StoreDamaged';
}
