// What runs on the server for a page, and is what costs.
import { free, paid } from '../paid.mjs';

export async function paidProps() {
  return { props: { text: paid() } };
}

export async function postProps({ req }) {
  return { props: { text: req.method === 'POST' ? paid() : 'not here' } };
}

export async function freeProps() {
  return { props: { text: free() } };
}
