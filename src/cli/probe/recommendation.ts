// The lines to paste into a configuration, each with the reason or the reservation that belongs to it. It advises only
// what was asked: a weaker profile is named only together with the probe that would prove it.
import { adviseMethods } from './methods.ts';
import type { Judgement, Leak } from './profiles.ts';
import type { PathReport } from './path.ts';

export function recommendationLines(
  reports: readonly PathReport[],
  judgement: Judgement,
  tried: readonly string[],
): string[] {
  const { recommended } = judgement;
  const { undeclaredMethods, why } = adviseMethods(reports, tried);
  const alike = recommended?.alike ?? [];
  const profile = recommended?.profile ?? 'unknown';
  const kept = (what: string, value: string, leaks: readonly Leak[] | undefined): string[] => {
    if (leaks === undefined) return [];
    return leaks.length === 0
      ? [`    # ${what}: ${value}   # safe here too, if your API needs it`]
      : [`    # ${what}: ${value}   # NOT safe here: free would be ${some(leaks.map(({ target }) => target))}`];
  };
  return [
    'For the configuration:',
    '',
    '  proxy:',
    `    upstream_profile: ${profile}${alike.length === 0 ? '' : `   # ${alike.join(', ')} ${alike.length === 1 ? 'folds' : 'fold'} alike: write the one that you run`}`,
    ...weaker(judgement),
    `    undeclared_methods: ${undeclaredMethods}   # ${why}`,
    ...kept('encoded_slashes', 'keep', recommended?.keepEncodedSlashes),
    ...kept('double_slashes', 'keep', recommended?.keepDoubleSlashes),
  ];
}

/** Profiles that fold less and would do if more had been asked. */
function weaker({ safe, unproven, recommended }: Judgement): string[] {
  const folds = safe.find(({ names }) => names.some((name) => name === recommended?.profile))?.folds ?? [];
  const first = unproven.find((group) => group.folds.every((rule) => folds.includes(rule)));
  if (first === undefined) return [];
  return [`    #   or ${first.names.join(', ')}, once a --path that ends in an id was asked as well`];
}

/** Lists the first few of `targets`, and says how many more there are. */
export function some(targets: readonly string[]): string {
  const shown = targets.slice(0, 3).join('  ');
  return targets.length > 3 ? `${shown}  and ${targets.length - 3} more` : shown;
}
