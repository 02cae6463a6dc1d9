import { paid } from '../../../../../../paid.mjs';

export function load() {
  return { text: paid() };
}
