// Examples of the problems that a registry answers, for the OpenAPI document: a sentence for each code, as its clients read it.
import { PROBLEMS, type ProblemCode } from '../../domain/problem.ts';

const DETAILS: Partial<Record<ProblemCode, string>> = {
  malformed: 'The query has parameters that are not known here: stauts (did you mean status?).',
  credentials_missing: 'This endpoint needs a dashboard JWT: send Authorization: Bearer.',
  credentials_invalid: 'The token has expired.',
  host_refused: 'The desk is served under https://desk.example.com alone.',
  origin_refused: 'This request comes from another page than the desk.',
  scope_insufficient: 'A viewer may look and change nothing.',
  not_found: 'There is nothing with this id.',
  webhook_unknown: 'The configuration of this registry has no webhook with this id.',
  too_many_keys: 'There are 200 live keys; revoke one first.',
  duplicate: 'A route with this method and pattern exists.',
  price_lowered: 'This would make a path cheaper that the dashboard prices.',
  payment_in_use: 'The refund is not recorded: somebody delivers what was paid for right now; try again in a minute.',
  refund_exceeds: 'The refund is not recorded: only 0.04 is left of the charge.',
  refund_unproven: "The refund is not proven: it moves none of the charge's token to the payer.",
  chain_unavailable: 'The refund is not recorded: no node answered; try again, or record it as unproven.',
  precondition_failed: 'The route was changed since you read it.',
  body_too_large: 'The body is larger than 65536 bytes.',
  media_type_unsupported: 'Send application/json.',
  invalid: 'The body is not valid. amount: This member is required.',
  too_many_requests: 'That was too often; try again later.',
  ledger_unavailable: 'The ledger does not answer; try again later.',
  registry_unavailable: 'The store of this registry does not answer; try again later.',
  internal: 'Something went wrong here; the log of this registry says more.',
};
const MEMBERS: Partial<Record<ProblemCode, object>> = {
  duplicate: { existing_id: '00000000-0000-4000-8000-000000000001' },
  price_lowered: { existing_id: '00000000-0000-4000-8000-000000000001' },
  invalid: { errors: [{ pointer: '/amount', detail: 'This member is required.' }] },
};

export function exampleOfProblem(code: ProblemCode): object {
  const { title, status } = PROBLEMS[code];
  const detail = DETAILS[code] ?? `${title}.`;
  return { type: `/problems/${code}`, title, status, detail, code, ...MEMBERS[code] };
}
