// What the pages and the route handlers of the API do.
import { createElement } from 'react';
import { free, paid } from '../paid.mjs';

export async function PaidPage() {
  return createElement('p', undefined, paid());
}

export function paidAnswer() {
  return new Response(paid());
}

export function freeAnswer() {
  return new Response(free());
}
