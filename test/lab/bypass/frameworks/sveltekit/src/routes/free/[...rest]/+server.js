import { free } from '../../../../../paid.mjs';

export function GET() {
  return new Response(free());
}
