// Refuses a request that names no customer on a route that wants one: after the customers who were recognised, before anything
// is bought.
import { customerRequired } from '../../domain/decide.ts';
import { readCustomerId } from '../caller.ts';
import { NEXT, refuse, type WayToPass } from './way-to-pass.ts';

export function refuseAnonymous(customerHeader: string): WayToPass {
  return ({ sale: { route }, request }) => {
    if (route.allowAnonymous) return NEXT;
    const id = readCustomerId(request.req.rawHeaders, customerHeader) ?? customerRequired();
    return typeof id === 'string' ? NEXT : refuse(route, id);
  };
}
