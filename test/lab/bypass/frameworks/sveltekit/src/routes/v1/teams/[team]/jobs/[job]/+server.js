import { paid } from '../../../../../../../../paid.mjs';

export function POST() {
  return new Response(paid());
}
