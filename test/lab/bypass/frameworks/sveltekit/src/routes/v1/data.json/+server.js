import { paid } from '../../../../../paid.mjs';

export function GET() {
  return new Response(paid());
}
