// Refuses a request that names no customer on a route that wants one: after the customers who were recognised, before anything
// is bought.
import { customerRequired } from '../../domain/decide.ts';
import { headerValues } from '../caller.ts';
import { NEXT, refuse, type WayToPass } from './way-to-pass.ts';

export function refuseAnonymous(customerHeader: string): WayToPass {
  return ({ sale: { route }, request }) =>
    route.allowAnonymous || headerValues(request.req.rawHeaders, customerHeader).length > 0
      ? NEXT
      : refuse(route, customerRequired());
}
