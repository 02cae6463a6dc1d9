// Refuses a request whose plan needs to see the upstream's response, where none passes: a made-up credential must not be taken
// for a customer's because nobody could be asked.
import { problem } from '../../domain/problem.ts';
import { refuse, type WayToPass } from './way-to-pass.ts';

export const refuseUnanswerable: WayToPass = ({ sale: { plan, route } }) => {
  const detail = `The plan "${plan.id}" of this route depends on what the API answers, which is not seen here.`;
  return refuse(route, problem('plan_unanswerable', detail));
};
