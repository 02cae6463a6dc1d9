// Writes the findings of a probe as one JSON object for a program: all questions, their results, and the advice that
// the text gives too. Members are snake_case like everything that Tollgate writes for programs.
import { adviseMethods } from './methods.ts';
import type { ProfileGroup } from './profiles.ts';
import { isSafe, type ProbeReport } from './report.ts';
import { pathsOf, patternFor, treatmentUnder } from './tollgate.ts';

export function jsonReport({ upstream, host, reports, judgement, tried, asked: profile }: ProbeReport): object {
  const { recommended } = judgement;
  const names = (groups: readonly ProfileGroup[]): unknown[] =>
    groups.flatMap(({ names: all, folds, leaks }) =>
      all.map((profile) => ({ profile, folds, free: leaks.map(({ target }) => target) })),
    );
  return {
    upstream,
    told: reports.some(({ told }) => told.ok),
    recommended: {
      upstream_profile: recommended?.profile ?? 'unknown',
      alike: recommended?.alike ?? [],
      undeclared_methods: adviseMethods(reports, tried).undeclaredMethods,
      encoded_slashes_keep_is_safe: recommended?.keepEncodedSlashes.length === 0,
      double_slashes_keep_is_safe: recommended?.keepDoubleSlashes.length === 0,
    },
    ...(profile === undefined ? {} : { asked: { profile, safe: isSafe(profile, judgement) } }),
    safe: names(judgement.safe),
    unproven: names(judgement.unproven),
    unsafe: names(judgement.unsafe),
    needs: judgement.needs.map(({ rule, because }) => ({ rule, because: because.map(({ target }) => target) })),
    unasked: judgement.unasked,
    paths: reports.map(({ known, first, unknownStatus, told }) => {
      const treat = treatmentUnder(pathsOf(recommended?.profile ?? 'unknown'), known, host);
      return {
        path: known.path + known.query,
        protected_as: patternFor(known),
        status: first.kind === 'answer' ? first.status : null,
        unknown_status: unknownStatus ?? null,
        doubt: told.ok ? null : told.doubt,
        canaries: told.ok ? told.asked.map((asked) => ({ ...asked, tollgate: treat(asked.target).kind })) : [],
        methods: told.ok ? told.methods : [],
      };
    }),
  };
}
