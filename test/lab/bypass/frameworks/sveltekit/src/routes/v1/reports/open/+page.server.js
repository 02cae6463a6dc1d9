import { free } from '../../../../../../paid.mjs';

export function load() {
  return { text: free() };
}
