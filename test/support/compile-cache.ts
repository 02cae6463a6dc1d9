// For the environment of processes that tests start: Node keeps there what it compiled, so that the hundreds of starts of one
// run take half of the CPU.
import path from 'node:path';

export const COMPILE_CACHE = {
  NODE_COMPILE_CACHE: path.resolve(import.meta.dirname, '../../node_modules/.cache/compiled'),
};
