// GET /v1/billing/try: what becomes of a request, without sending it. Nothing is counted or stored.
import { explainMatch } from '../../domain/explanation.ts';
import type { MatchQuery } from '../../domain/routing/match-query.ts';
import { PROBLEMS } from '../../domain/problem.ts';
import { jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import type { TrialAnswer, TrialOutcome } from './trial.ts';
import type { TryBody } from './try-schemas.ts';

export async function tryRequest(
  { query }: EndpointCall<unknown, MatchQuery>,
  services: Services,
): Promise<EndpointOutcome> {
  const method = query.method.toUpperCase();
  const trial = services.trial();
  const question = { method, path: query.path, rules: services.matchRules(), nowMs: services.clock.now() };
  const {
    answer,
    path,
    verdict,
    considered,
    sale,
    decides = '',
  } = explainMatch(services.snapshot(), {
    ...question,
    ...(trial === undefined ? {} : { offer: trial.offer }),
  });
  const { matched, payment_required, route, params } = answer;
  const refused = 'code' in verdict ? verdict : undefined;
  const mark = query.path.indexOf('?');
  const outcome: TrialOutcome | undefined =
    'code' in verdict || path === undefined ? undefined : await trial?.answer(verdict, { method, path });
  return jsonResponse(200, {
    target: path === undefined ? null : path + (mark < 0 ? '' : query.path.slice(mark)),
    problem: refused ? { status: PROBLEMS[refused.code].status, code: refused.code, detail: refused.detail } : null,
    ...{ matched, payment_required, route, params },
    because: considered.map(({ route: each, because: why }) => ({
      ...{ route_id: each.id, route_pattern: each.pattern, method: each.method, wins: each.id === route?.id, why },
    })),
    plan: sale ? { id: sale.plan.id, decides } : null,
    answer: outcome?.kind === 'answer' ? view(outcome.answer) : null,
    reason: outcome?.kind === 'silent' ? SILENT : payment_required && !refused && trial === undefined ? NO_PROXY : null,
    curl: trial === undefined ? null : `curl -i -X ${method} ${quoted(trial.origin + query.path)}`,
  } satisfies TryBody);
}

const NO_PROXY = 'No proxy runs in this process, so who is paid and how is not known here.';

const SILENT = 'No worker of this process answered in time; try again.';

function view({ status, headers, body }: TrialAnswer): NonNullable<TryBody['answer']> {
  const pairs = headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1] ?? '']] : []));
  return { status, headers: pairs, body };
}

/** One word of a shell, whatever it holds. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
